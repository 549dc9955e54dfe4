"""Rules about stages that share a pod."""

from omni_contract.api.rules.rule import FieldRule, ItemRule, Rule
from omni_contract.api.v1alpha1 import OmniModelSpec, StageSpec

GROUPS = "self.placement.colocate"
HAS_GROUPS = "has(self.placement) && has(self.placement.colocate)"


def _names_stages(spec: OmniModelSpec) -> bool:
    names = {stage.name for stage in spec.stages}
    return spec.family is not None or all(names.issuperset(group) for group in spec.placement.colocate)


def _are_apart(spec: OmniModelSpec) -> bool:
    listed = [name for group in spec.placement.colocate for name in group]
    return len(listed) == len(set(listed))


def _may_choose_devices(spec: OmniModelSpec, stage: StageSpec) -> bool:
    return stage.accelerator.devices is None or spec.placement.group_of(stage.name) is not None


PLACEMENT_RULES: tuple[Rule, ...] = (
    FieldRule(
        at=("spec",),
        pointer="placement.colocate",
        cel=f"has(self.family) || !({HAS_GROUPS}) || {GROUPS}.all(group, group.all(name, "
        "self.stages.exists(stage, stage.name == name)))",
        holds=_names_stages,
        message="a group names a stage that does not exist; add the stage or correct the name",
    ),
    FieldRule(
        at=("spec",),
        pointer="placement.colocate",
        cel=f"!({HAS_GROUPS}) || {GROUPS}.all(group, group.all(name, {GROUPS}.exists_one(other, name in other)))",
        holds=_are_apart,
        message="a stage is in two groups, but it can run in one pod only; keep it in one of them",
    ),
    ItemRule(
        at=("spec",),
        items="stages",
        cel="!has(item.accelerator) || !has(item.accelerator.devices) || "
        f"({HAS_GROUPS} && {GROUPS}.exists(group, item.name in group))",
        holds=_may_choose_devices,
        message='stage "{item.name}" chooses devices of a pod that is its own; set accelerator.count, or list it in '
        "placement.colocate with the stages that it shares devices with",
    ),
    FieldRule(
        at=("spec", "stages", "[]", "accelerator"),
        pointer="devices",
        cel="!has(self.devices) || !has(self.count)",
        holds=lambda accelerator: accelerator.devices is None or accelerator.count is None,
        message="devices says how many there are, too; remove count",
    ),
)

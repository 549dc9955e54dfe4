"""Rules about edges."""

from omni_contract.api.rules.rule import FieldRule, ItemRule, Rule
from omni_contract.api.v1alpha1 import EdgeSpec, OmniModelSpec

EDGE = ("spec", "edges", "[]")


def _names_stages(spec: OmniModelSpec, edge: EdgeSpec) -> bool:
    names = {stage.name for stage in spec.stages}
    return spec.family is not None or {edge.from_, edge.to} <= names


EDGE_RULES: tuple[Rule, ...] = (
    ItemRule(
        at=("spec",),
        items="edges",
        unless="has(self.family)",
        cel="self.stages.exists(stage, stage.name == item.from) && self.stages.exists(stage, stage.name == item.to)",
        holds=_names_stages,
        message='edge "{item.from}->{item.to}" names a stage that does not exist; add the stage or correct the name',
    ),
    FieldRule(
        at=EDGE,
        cel="self.from != self.to",
        holds=lambda edge: edge.from_ != edge.to,
        message='stage "{self.from}" has an edge to itself; feedback belongs inside an engine, so remove the edge',
    ),
    FieldRule(
        at=EDGE,
        pointer="retain",
        cel="!has(self.retain) || self.retain != 'terminal' || !has(self.connector) || self.connector != 'inline'",
        holds=lambda edge: edge.retain != "terminal" or edge.connector != "inline",
        message='edge "{self.from}->{self.to}" travels inside the control message (connector inline), so its producer '
        "has nothing to retain; remove retain or use connector grpc",
    ),
)

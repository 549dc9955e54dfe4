"""What must be written so that a model's children are as desired, and what stands in the way."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from omni_contract.wire import names as wire
from omni_operator.objects import (
    CONFIG_MAP,
    CONTROLLER_REVISION,
    DEPLOYMENT,
    Manifest,
    Ref,
    controller_of,
    kind_of,
    labels_of,
    ref_of,
)
from omni_operator.plan import names
from omni_operator.plan.diff import differs
from omni_operator.plan.workload import is_rolled_out

HISTORY = 3
"""ControllerRevisions that are kept, the current one included."""


@dataclass(frozen=True)
class Changes:
    apply: tuple[Manifest, ...] = ()
    """Children that are missing or differ, in the order in which to apply them."""
    delete: tuple[Manifest, ...] = ()
    """Children of ours, as observed, that nothing asks for any more."""
    foreign: tuple[Ref, ...] = ()
    """Objects with our names that are not ours: never touched."""
    leaving: tuple[Ref, ...] = ()
    """Objects with our names of a model of the same name that was deleted; garbage collection is at them."""

    @property
    def is_empty(self) -> bool:
        return not (self.apply or self.delete or self.foreign or self.leaving)


def changes_of(desired: Iterable[Manifest], observed: Iterable[Manifest], owner_uid: str) -> Changes:
    wanted = {ref_of(child): child for child in desired}
    there = {ref_of(child): child for child in observed}
    strangers = {ref: child for ref, child in there.items() if ref in wanted and not is_owned(child, owner_uid)}
    return Changes(
        apply=tuple(
            child
            for ref, child in wanted.items()
            if ref not in strangers and (ref not in there or differs(child, there[ref]))
        ),
        delete=tuple(_unwanted(wanted, there, owner_uid)),
        foreign=tuple(ref for ref, child in strangers.items() if not is_of_deleted_model(child, owner_uid)),
        leaving=tuple(ref for ref, child in strangers.items() if is_of_deleted_model(child, owner_uid)),
    )


def is_owned(child: Manifest, owner_uid: str) -> bool:
    controller = controller_of(child)
    return controller is not None and bool(controller["uid"] == owner_uid)


def is_of_deleted_model(child: Manifest, owner_uid: str) -> bool:
    """Whether a model of another uid owns it, although our model bears the name that its label says."""
    controller = controller_of(child)
    if controller is None or controller["uid"] == owner_uid:
        return False
    return (controller["kind"], controller["name"]) == (wire.KIND, labels_of(child).get(wire.LABEL_MODEL))


def _unwanted(wanted: Mapping[Ref, Manifest], there: Mapping[Ref, Manifest], owner_uid: str) -> Iterable[Manifest]:
    moving = {component for component, is_done in _rollouts(wanted, there) if not is_done}
    for ref, child in there.items():
        if ref in wanted or not is_owned(child, owner_uid) or child["metadata"].get("deletionTimestamp"):
            continue
        if ref.kind is CONTROLLER_REVISION and not _is_too_old(child, wanted):
            continue
        component = labels_of(child).get(wire.LABEL_COMPONENT, "")
        if (ref.kind is CONFIG_MAP and component in moving) or (moving and names.is_master(component)):
            continue
        yield child


def _rollouts(wanted: Mapping[Ref, Manifest], there: Mapping[Ref, Manifest]) -> Iterable[tuple[str, bool]]:
    """Each component with a Deployment, and whether only pods of its desired template are left.

    Until then a pod of the old template may still restart and read its old stage file, or join its old master.
    """
    for ref, deployment in wanted.items():
        if ref.kind is DEPLOYMENT:
            live = there.get(ref)
            is_done = live is not None and not differs(deployment, live) and is_rolled_out(live)
            yield labels_of(deployment)[wire.LABEL_COMPONENT], is_done


def _is_too_old(revision: Manifest, wanted: Mapping[Ref, Manifest]) -> bool:
    newest = max(int(child["revision"]) for child in wanted.values() if kind_of(child) is CONTROLLER_REVISION)
    return int(revision["revision"]) <= newest - HISTORY

"""All children of a model as they should be: its record's manifests, scaled, owned, labelled with what we asked for."""

from collections.abc import Iterator, Mapping

from omni_contract.resolve import ResolvedModel, StageLocation, managed_stores, stage_table
from omni_contract.wire import names as wire
from omni_operator import labels
from omni_operator.build.autoscaler import autoscalers
from omni_operator.build.configmap import stage_table_map
from omni_operator.build.controller_revision import controller_revision
from omni_operator.objects import CHILD_KINDS, DEPLOYMENT, Manifest, kind_of
from omni_operator.plan import names
from omni_operator.plan.observe import Owner
from omni_operator.plan.record import Record
from omni_operator.plan.scaling import autoscaled, with_replicas


def desired_children(model: ResolvedModel, record: Record, owner: Owner, observed: list[Manifest]) -> list[Manifest]:
    """In the order in which they are to be applied: the record first, workloads last."""
    revision = controller_revision(model.name, record, observed)
    units = _of_units(record, replicas_of(model, owner))
    children = [revision, _stage_table(model, owner, revision), *units, *autoscalers(model)]
    return [owned(child, owner) for child in sorted(children, key=lambda child: CHILD_KINDS.index(kind_of(child)))]


def replicas_of(model: ResolvedModel, owner: Owner) -> dict[str, int | None]:
    """By component; None where others say it. A suspended model keeps its frontend, which then answers 503."""
    masters = [names.master_component(connector) for connector in managed_stores(model)]
    wanted = {names.component_of(model, stage.name): stage.replicas for stage in model.stages}
    said: dict[str, int | None] = {**dict.fromkeys(masters, 1), **wanted}
    said |= {component: None for component in autoscaled(model) if component in said}
    if owner.is_suspended:
        said = dict.fromkeys(said, 0)
    return {**said, names.FRONTEND: None if model.frontend.autoscaling else model.frontend.replicas}


def owned(child: Manifest, owner: Owner) -> Manifest:
    """Garbage collection removes it with its owner, so that deleting a model needs neither finalizer nor operator."""
    reference = {
        "apiVersion": wire.API_VERSION,
        "kind": wire.KIND,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {**child["metadata"], "namespace": owner.namespace, "ownerReferences": [reference]}
    applied = names.digest(names.canonical({**child, "metadata": metadata}))
    return {**child, "metadata": {**metadata, "annotations": {labels.APPLIED: applied}}}


def _stage_table(model: ResolvedModel, owner: Owner, revision: Manifest) -> Manifest:
    def locate(stage: str) -> StageLocation:
        return StageLocation(service=names.component_name(model.name, stage))

    return stage_table_map(stage_table(model, revision["metadata"]["name"], owner.created, locate))


def _of_units(record: Record, replicas: Mapping[str, int | None]) -> Iterator[Manifest]:
    for component, unit in record.units.items():
        said = replicas[component]
        for manifest in unit.manifests:
            if manifest["kind"] == DEPLOYMENT.name and said is not None:
                yield with_replicas(manifest, said)
            else:
                yield manifest

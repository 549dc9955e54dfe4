"""Renders what restarts together: one stage or a group of them, the frontend, or the master of a store."""

from omni_contract.resolve import (
    ResolvedGroup,
    ResolvedModel,
    managed_stores,
    stage_file,
    stage_revision,
    with_masters_at,
)
from omni_contract.wire import names as wire
from omni_operator.build.configmap import stage_file_map
from omni_operator.build.deployment import stage_deployment
from omni_operator.build.frontend import frontend_manifests
from omni_operator.build.group import group_manifests, group_revision
from omni_operator.build.master import master_address, master_manifests
from omni_operator.build.service import stage_service
from omni_operator.plan import names
from omni_operator.plan.inputs import Inputs, with_recorded_contracts
from omni_operator.plan.record import Record, Unit
from omni_operator.settings import Settings


def render(model: ResolvedModel, inputs: Inputs, recorded: Record | None, settings: Settings) -> Record:
    """The record of now: units that are not stale stay byte for byte as they were recorded."""
    stale = inputs.stale_units(recorded)
    model = with_recorded_contracts(model, recorded, stale)
    kept = {} if recorded is None else recorded.units
    return Record(
        refresh=inputs.refresh or (recorded and recorded.refresh),
        contracts={edge.name: edge.contract_hash for edge in model.edges},
        units={
            name: _rendered(model, name, said, settings) if name in stale else kept[name]
            for name, said in inputs.units.items()
        },
    )


def _rendered(model: ResolvedModel, component: str, inputs: str, settings: Settings) -> Unit:
    masters = {names.master_component(connector): connector for connector in managed_stores(model)}
    groups = {names.group_component(group): group for group in model.groups}
    if component in masters:
        manifests = master_manifests(model, masters[component], settings.masters, settings.images)
    elif component in groups:
        return _group(_told(model), groups[component], inputs, settings)
    elif component == names.FRONTEND:
        manifests = frontend_manifests(model, settings.frontend, settings.images)
    else:
        return _stage(_told(model), component, inputs, settings)
    revision = names.digest(names.canonical(list(manifests)))
    return Unit(inputs=inputs, revision=revision, manifests=tuple(manifests))


def _stage(model: ResolvedModel, name: str, inputs: str, settings: Settings) -> Unit:
    revision = stage_revision(model, name)
    file = stage_file_map(stage_file(model, name, revision, wire.VOLUMES_ROOT))
    deployment = stage_deployment(model, model.stage(name), file, settings.images)
    return Unit(inputs=inputs, revision=revision, manifests=(file, stage_service(model.name, name, name), deployment))


def _group(model: ResolvedModel, group: ResolvedGroup, inputs: str, settings: Settings) -> Unit:
    manifests = group_manifests(model, group, settings.images)
    return Unit(inputs=inputs, revision=group_revision(model, group), manifests=tuple(manifests))


def _told(model: ResolvedModel) -> ResolvedModel:
    return with_masters_at(model, {name: master_address(model, name) for name in managed_stores(model)})

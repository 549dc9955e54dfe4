"""Renders what restarts together: one stage, or the frontend."""

from collections.abc import Iterable

from omni_contract.resolve import ResolvedModel, stage_file, stage_revision
from omni_contract.wire import names as wire
from omni_operator.build.configmap import stage_file_map
from omni_operator.build.deployment import stage_deployment
from omni_operator.build.frontend import frontend_manifests
from omni_operator.build.service import stage_service
from omni_operator.objects import Manifest
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
    manifests = _frontend(model, settings) if component == names.FRONTEND else _stage(model, component, settings)
    return Unit(inputs=inputs, revision=_revision(model, component, manifests), manifests=tuple(manifests))


def _stage(model: ResolvedModel, name: str, settings: Settings) -> list[Manifest]:
    file = stage_file_map(stage_file(model, name, stage_revision(model, name), wire.VOLUMES_ROOT))
    deployment = stage_deployment(model, model.stage(name), file, settings.images)
    return [file, stage_service(model.name, name), deployment]


def _frontend(model: ResolvedModel, settings: Settings) -> list[Manifest]:
    return frontend_manifests(model, settings.frontend, settings.images)


def _revision(model: ResolvedModel, component: str, manifests: Iterable[Manifest]) -> str:
    if component == names.FRONTEND:
        return names.digest(names.canonical(list(manifests)))
    return stage_revision(model, component)

"""The stage file and the stage table, made from a resolved model; and the revision that says when a stage restarts."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath

from pydantic_core import to_jsonable_python

from omni_contract.api.v1alpha1 import ConnectorSpec, OutputSpec
from omni_contract.resolve.connectors import PICKED_BY_AUTO
from omni_contract.resolve.contracts import canonical_hash
from omni_contract.resolve.ports import with_ports_of
from omni_contract.resolve.resolved import ResolvedDiagnostics, ResolvedEdge, ResolvedModel, ResolvedStage
from omni_contract.wire.stage_file import EdgeEnd, StageFile
from omni_contract.wire.stage_table import StageTable, TableEdge, TableStage


@dataclass(frozen=True)
class StageLocation:
    """Where the frontend finds a stage's replicas: behind a headless Service, or at addresses."""

    service: str | None = None
    addresses: tuple[str, ...] = ()


def stage_file(model: ResolvedModel, stage_name: str, revision: str, volumes_root: str) -> StageFile:
    """What the workers of one stage are told; `volumes_root` holds a folder per claim."""
    stage = model.stage(stage_name)
    return StageFile(
        model=model.name,
        stage=stage.name,
        revision=revision,
        family=model.family,
        model_path=str(PurePosixPath(volumes_root, model.source.claim, model.source.path)),
        load_format=model.load_format,
        vendor=stage.device.vendor,
        engine=stage.engine,
        inputs=tuple(_end(edge, edge.source) for edge in model.edges if edge.target == stage.name),
        outputs=tuple(_producing_end(edge) for edge in model.edges if edge.source == stage.name),
        connectors=_connectors(model, stage_name),
        output=_made_output(stage),
        max_in_flight=stage.max_in_flight,
        max_batch_size=stage.max_batch_size,
        batch_timeout_s=stage.batch_timeout_s,
        drain_timeout_s=stage.drain_timeout_s,
        startup_timeout_s=stage.startup_timeout_s,
        memory_fraction=stage.memory_fraction,
    )


def stage_table(
    model: ResolvedModel, revision: str, created: int, locate: Callable[[str], StageLocation]
) -> StageTable:
    """What the frontend is told; `locate` gives the place of a stage by its name, `created` is in Unix seconds."""
    return StageTable(
        model=model.name,
        namespace=model.namespace,
        revision=revision,
        family=model.family,
        served_names=model.served_names,
        stages=tuple(_row(stage, locate(stage.name)) for stage in model.stages),
        edges=tuple(
            TableEdge(
                source=edge.source,
                target=edge.target,
                connector=edge.connector,
                retain=edge.retain,
                contract_hash=edge.contract_hash,
            )
            for edge in model.edges
        ),
        limits=model.frontend.limits,
        created=created,
    )


def stage_revision(model: ResolvedModel, stage_name: str) -> str:
    """A short hash of all that makes the stage restart: its file, device, resources, pod template, diagnostics.

    Replicas, sampling defaults and voices are not in it; neither is anything of another stage but the edges' contracts.
    """
    stage = model.stage(stage_name)
    pod = asdict(replace(stage, replicas=0, sampling={}, output=_made_output(stage)))
    for name, unsaid in (("diagnostics", ResolvedDiagnostics()), ("memory_fraction", None)):
        if getattr(stage, name) == unsaid:  # as before there were any
            del pod[name]
    file = stage_file(model, stage_name, revision="", volumes_root="/")
    return canonical_hash({"file": file.model_dump(mode="json"), "pod": to_jsonable_python(pod)}, 10)


def _made_output(stage: ResolvedStage) -> OutputSpec | None:
    """What the stage itself makes of it; the names of voices are the frontend's."""
    return stage.output and OutputSpec(modality=stage.output.modality, final=stage.output.final)


def _connectors(model: ResolvedModel, stage_name: str) -> tuple[ConnectorSpec, ...]:
    """What the stage's own edges use; of `auto` it is whatever that may pick."""
    edges = [edge for edge in model.edges if stage_name in (edge.source, edge.target)]
    used = {edge.connector for edge in edges}
    if any(edge.connector == "auto" and edge.shares_memory for edge in edges):
        used.update(PICKED_BY_AUTO)
    index = [stage.name for stage in model.stages].index(stage_name)
    return tuple(with_ports_of(connector, index) for connector in model.connectors if connector.name in used)


def _end(edge: ResolvedEdge, peer: str) -> EdgeEnd:
    return EdgeEnd(
        edge=edge.name,
        peer=peer,
        connector=edge.connector,
        transform=edge.transform,
        retain=edge.retain,
        contract_hash=edge.contract_hash,
    )


def _producing_end(edge: ResolvedEdge) -> EdgeEnd:
    """Chunks say what they are, so only who cuts them must know how."""
    return _end(edge, edge.target).model_copy(update={"streaming": edge.streaming})


def _row(stage: ResolvedStage, location: StageLocation) -> TableStage:
    return TableStage(
        name=stage.name,
        engine=stage.engine.kind,
        output=stage.output,
        sampling=dict(stage.sampling),
        max_in_flight=stage.max_in_flight,
        service=location.service,
        addresses=location.addresses,
    )

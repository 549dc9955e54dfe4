"""resolve: an OmniModel and the cluster's accelerators become one value in which nothing is left open."""

from collections.abc import Callable, Mapping

from omni_contract.accelerators import AcceleratorCatalog
from omni_contract.api.problems import InvalidModelError
from omni_contract.api.quantity import quantity
from omni_contract.api.v1alpha1 import (
    ArEngine,
    ConnectorSpec,
    EdgeSpec,
    EngineBlock,
    EngineKind,
    MonitoringSpec,
    OmniModelSpec,
    StageSpec,
)
from omni_contract.resolve.checks import placement_problems, spec_problems
from omni_contract.resolve.colocation import groups_of, shares_pod
from omni_contract.resolve.connectors import connectors_with_settings, in_pods
from omni_contract.resolve.contracts import Ends, contract_hash
from omni_contract.resolve.devices import device
from omni_contract.resolve.graph import Graph, output_of, preset_of, stage_graph
from omni_contract.resolve.resolved import (
    ResolvedDiagnostics,
    ResolvedEdge,
    ResolvedModel,
    ResolvedStage,
    VolumeSource,
)
from omni_contract.resolve.sampling import sampling_of

MAX_IN_FLIGHT: dict[EngineKind, int] = {"diffusion": 8, "generation": 64, "fake": 256}
"""Requests that an engine takes at once unless the stage says otherwise; an ar engine has a field of its own."""


class ResolveError(InvalidModelError):
    """The model cannot run here as it stands; `problems` has every reason."""


def resolve(name: str, namespace: str, spec: OmniModelSpec, catalog: AcceleratorCatalog) -> ResolvedModel:
    """The model with presets merged, defaults filled and rules checked. Pure; raises ResolveError with all problems."""
    problems = spec_problems(spec) or placement_problems(spec, catalog)
    if problems:
        raise ResolveError(problems)
    graph = stage_graph(spec, preset_of(spec))

    def shares_memory(edge: EdgeSpec) -> bool:
        return catalog.stages_share_memory or shares_pod(spec, edge.from_, edge.to)

    connectors = connectors_with_settings(spec, graph.edges, shares_memory)
    return ResolvedModel(
        name=name,
        namespace=namespace,
        family=spec.family,
        source=volume_source(spec.model.source),
        load_format=spec.model.load_format,
        served_names=spec.model.served_names or (name,),
        stages=tuple(_stage(stage, graph, spec, catalog) for stage in graph.in_order()),
        edges=_edges(spec, graph, connectors, shares_memory),
        connectors=tuple(connectors.values() if catalog.stages_share_memory else map(in_pods, connectors.values())),
        frontend=spec.frontend,
        tls=spec.network.tls,
        monitoring=spec.monitoring,
        groups=groups_of(spec, graph.stages, catalog),
        autoscaling={stage.name: stage.autoscaling for stage in graph.stages if stage.autoscaling},
    )


def volume_source(source: str) -> VolumeSource:
    """pvc://CLAIM/PATH in parts; the rules have checked its form."""
    claim, _, path = source.removeprefix("pvc://").partition("/")
    return VolumeSource(claim, path)


def _stage(stage: StageSpec, graph: Graph, spec: OmniModelSpec, catalog: AcceleratorCatalog) -> ResolvedStage:
    preset, engine = preset_of(spec), _engine(stage)
    resources = stage.resources.model_dump(exclude_none=True)
    return ResolvedStage(
        name=stage.name,
        engine=engine,
        device=device(stage, catalog),
        replicas=stage.autoscaling.min_replicas if stage.autoscaling else stage.replicas,
        requests=resources,
        limits={"memory": resources["memory"]} if "memory" in resources else {},
        sampling=sampling_of(stage, graph.stages, preset),
        max_in_flight=stage.max_in_flight or max(_takes_at_once(engine), stage.max_batch_size),
        max_batch_size=stage.max_batch_size,
        batch_timeout_s=stage.batch_timeout_seconds,
        output=output_of(stage, graph, preset),
        shm_bytes=int(quantity(stage.shm.size)),
        drain_timeout_s=stage.drain.timeout_seconds,
        startup_timeout_s=stage.startup_timeout_seconds,
        template=stage.template,
        diagnostics=_diagnostics(stage, spec.monitoring),
        memory_fraction=stage.accelerator.memory_fraction,
    )


def _diagnostics(stage: StageSpec, monitoring: MonitoringSpec) -> ResolvedDiagnostics:
    """Of the trace's settings only the collector: whether a request is traced is the frontend's decision."""
    return ResolvedDiagnostics(
        log_level=stage.log_level or monitoring.log_level,
        otlp_endpoint=monitoring.tracing.otlp_endpoint if monitoring.tracing else None,
        profile_bytes=int(quantity(stage.profiles.size)) if stage.profiles else None,
        admin_port=stage.admin_port,
    )


def _takes_at_once(engine: EngineBlock) -> int:
    return engine.max_sequences if isinstance(engine, ArEngine) else MAX_IN_FLIGHT[engine.kind]


def _edges(
    spec: OmniModelSpec,
    graph: Graph,
    connectors: Mapping[str, ConnectorSpec],
    shares_memory: Callable[[EdgeSpec], bool],
) -> tuple[ResolvedEdge, ...]:
    engines = {stage.name: _engine(stage) for stage in graph.stages}
    return tuple(
        ResolvedEdge(
            source=edge.from_,
            target=edge.to,
            connector=edge.connector,
            transform=edge.transform,
            retain=edge.retain,
            contract_hash=contract_hash(
                spec.family,
                spec.model,
                edge,
                Ends(engines[edge.from_], engines[edge.to], connectors.get(edge.connector)),
            ),
            streaming=edge.streaming if edge.streams else None,
            shares_memory=shares_memory(edge),
        )
        for edge in graph.edges
    )


def _engine(stage: StageSpec) -> EngineBlock:
    if stage.engine is None:
        raise AssertionError(f'stage "{stage.name}" passed the checks without an engine')
    return stage.engine

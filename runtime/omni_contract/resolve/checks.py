"""What can be wrong with a model once its family and the cluster are known; rules of the file: `api.rules`."""

from collections.abc import Mapping

from omni_contract.accelerators import AcceleratorCatalog
from omni_contract.api.nearest import did_you_mean
from omni_contract.api.problems import Path, Problem
from omni_contract.api.v1alpha1 import ENGINE_FIELDS, OmniModelSpec, StageSpec
from omni_contract.presets import Preset
from omni_contract.resolve.devices import device_problems
from omni_contract.resolve.graph import CycleError, Graph, output_of
from omni_contract.resolve.sampling import limit_problems, sampling_of, sampling_problems


def model_problems(
    spec: OmniModelSpec, preset: Preset | None, graph: Graph, catalog: AcceleratorCatalog
) -> list[Problem]:
    """Every reason why the graph cannot run with these accelerators."""
    paths = _paths(spec, graph)
    problems = [problem for stage in graph.stages for problem in _engine_problems(stage, paths[stage.name], catalog)]
    problems += _edge_problems(spec, graph)
    problems += _cycle_problems(graph)
    problems += _output_problems(graph, preset, paths)
    for stage in graph.stages:
        problems += device_problems(stage, paths[stage.name], catalog)
    problems += sampling_problems([(paths[stage.name], stage) for stage in graph.stages], preset)
    for stage in graph.stages:
        sampling = sampling_of(stage, graph.stages, preset)
        problems += limit_problems(paths[stage.name], sampling, spec.frontend.limits)
    return list(dict.fromkeys(problems))


def _paths(spec: OmniModelSpec, graph: Graph) -> Mapping[str, Path]:
    """Where each stage stands in the file; a stage that only the preset names stands at the list."""
    own: dict[str, Path] = {stage.name: ("spec", "stages", index) for index, stage in enumerate(spec.stages)}
    return {stage.name: own.get(stage.name, ("spec", "stages")) for stage in graph.stages}


def _engine_problems(stage: StageSpec, path: Path, catalog: AcceleratorCatalog) -> list[Problem]:
    if stage.engine is None:
        blocks = ", ".join(f"{field}: {{}}" for field in ENGINE_FIELDS)
        return [
            Problem(
                path, f'stage "{stage.name}" is not in the family\'s preset and sets no engine; add one of {blocks}'
            )
        ]
    if stage.fake and not catalog.allow_fake_engine:
        return [
            Problem(
                (*path, "fake"),
                f'stage "{stage.name}" uses the fake engine, which is switched off here; set allowFakeEngine '
                "in the chart's values (tests only) or choose another engine",
            )
        ]
    return []


def _edge_problems(spec: OmniModelSpec, graph: Graph) -> list[Problem]:
    names = [stage.name for stage in graph.stages]
    known = ", ".join(f'"{name}"' for name in names)
    return [
        Problem(
            ("spec", "edges", index, key),
            f'edge "{edge.name}" names stage "{name}", which does not exist{did_you_mean(name, names)}; '
            f"the stages are: {known}",
        )
        for index, edge in enumerate(spec.edges)
        for key, name in (("from", edge.from_), ("to", edge.to))
        if name not in names
    ]


def _cycle_problems(graph: Graph) -> list[Problem]:
    try:
        graph.in_order()
    except CycleError as cycle:
        names = ", ".join(f'"{name}"' for name in cycle.stages)
        reason = "a request passes each stage once, so remove one of the edges between them"
        return [Problem(("spec", "edges"), f"the stages {names} wait for each other in a circle; {reason}")]
    return []


def _output_problems(graph: Graph, preset: Preset | None, paths: Mapping[str, Path]) -> list[Problem]:
    producers = {edge.from_ for edge in graph.edges}
    return [
        Problem(
            paths[stage.name],
            f'stage "{stage.name}" feeds no other stage and has no output, so nobody would get what it makes; '
            "add output: {modality: …} or an edge from it",
        )
        for stage in graph.stages
        if stage.name not in producers and output_of(stage, graph, preset) is None
    ]

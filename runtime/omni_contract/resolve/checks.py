"""What can be wrong with a model once its family, or the cluster, is known. Rules of the file alone: `api.rules`."""

from omni_contract.accelerators import AcceleratorCatalog
from omni_contract.api.nearest import did_you_mean
from omni_contract.api.problems import Path, Problem
from omni_contract.api.rules import rule_problems
from omni_contract.api.v1alpha1 import ENGINE_FIELDS, EdgeSpec, OmniModelSpec, StageSpec
from omni_contract.presets import Preset
from omni_contract.resolve.colocation import group_problems, sharing_problems
from omni_contract.resolve.connectors import memory_problems
from omni_contract.resolve.devices import device_problems
from omni_contract.resolve.graph import CycleError, Graph, output_of, preset_of, stage_graph
from omni_contract.resolve.phases import phase_problems
from omni_contract.resolve.sampling import limit_problems, sampling_problems
from omni_contract.resolve.streaming import streaming_problems


def spec_problems(spec: OmniModelSpec) -> list[Problem]:
    """What is wrong with a spec whatever the cluster: broken rules of the file or, if there are none, of the graph."""
    if broken := rule_problems(spec):
        return broken
    preset = preset_of(spec)
    graph = stage_graph(spec, preset)
    stages = _placed(spec, graph)
    problems = _engine_problems(stages)
    problems += _edge_problems(spec, graph, preset)
    problems += _cycle_problems(graph)
    problems += streaming_problems(spec, graph)
    problems += _output_problems(stages, graph, preset)
    problems += _format_problems(stages, preset)
    problems += phase_problems(stages, graph)
    problems += sampling_problems(stages, preset)
    problems += limit_problems(stages, preset, spec.frontend.limits)
    problems += _certificate_problems(spec, graph)
    problems += group_problems(spec, stages)
    return list(dict.fromkeys(problems))


def placement_problems(spec: OmniModelSpec, catalog: AcceleratorCatalog) -> list[Problem]:
    """Why a sound spec cannot run with these accelerators."""
    graph = stage_graph(spec, preset_of(spec))
    stages = _placed(spec, graph)
    problems = [problem for path, stage in stages for problem in device_problems(stage, path, catalog)]
    problems = problems or sharing_problems(spec, stages, catalog)
    for path, stage in stages:
        if stage.fake and not catalog.allow_fake_engine:
            way_out = "set allowFakeEngine in the chart's values or pass --allow-fake-engine to omni serve (tests only)"
            message = f'stage "{stage.name}" uses the fake engine, which is switched off here; {way_out}'
            problems.append(Problem((*path, "fake"), message))
    if not catalog.stages_share_memory:
        problems += memory_problems(spec, graph.edges)
    return problems


def _placed(spec: OmniModelSpec, graph: Graph) -> list[tuple[Path, StageSpec]]:
    """Each stage with its place in the file; a stage that only the preset names stands at the list."""
    own: dict[str, Path] = {stage.name: ("spec", "stages", index) for index, stage in enumerate(spec.stages)}
    return [(own.get(stage.name, ("spec", "stages")), stage) for stage in graph.stages]


def _engine_problems(stages: list[tuple[Path, StageSpec]]) -> list[Problem]:
    blocks = ", ".join(f"{field}: {{}}" for field in ENGINE_FIELDS)
    return [
        Problem(
            path,
            f'stage "{stage.name}" is not in the family\'s preset and sets no engine block; add one of: {blocks}',
        )
        for path, stage in stages
        if stage.engine is None
    ]


def _format_problems(stages: list[tuple[Path, StageSpec]], preset: Preset | None) -> list[Problem]:
    formats = preset.number_formats if preset else {}
    return [
        Problem(
            (*path, stage.engine.kind, "dtype"),
            f'stage "{stage.name}" of this family computes in {formats[stage.name]} alone; remove dtype',
        )
        for path, stage in stages
        if stage.name in formats and stage.engine is not None
        if getattr(stage.engine, "dtype", "auto") not in ("auto", formats[stage.name])
    ]


def _edge_problems(spec: OmniModelSpec, graph: Graph, preset: Preset | None) -> list[Problem]:
    problems = []
    for index, edge in enumerate(spec.edges):
        path: Path = ("spec", "edges", index)
        problems += _end_problems(edge, path, [stage.name for stage in graph.stages])
        transforms = preset.transforms if preset else ()
        if edge.transform is not None and edge.transform not in transforms:
            known = f"; it has: {', '.join(transforms)}" if transforms else ", which has none; remove transform"
            whose = f'family "{preset.family}"' if preset else "a model without a family"
            problems.append(Problem((*path, "transform"), f'"{edge.transform}" is no transform of {whose}{known}'))
    return problems


def _certificate_problems(spec: OmniModelSpec, graph: Graph) -> list[Problem]:
    names = [stage.name for stage in graph.stages]
    known = ", ".join(f'"{name}"' for name in names)
    return [
        Problem(
            ("spec", "network", "tls", "stages", index),
            f'a certificate is for stage "{stage.name}", which does not exist{did_you_mean(stage.name, names)}; '
            f"the stages are: {known}",
        )
        for index, stage in enumerate(spec.network.tls.stages if spec.network.tls else ())
        if stage.name not in names
    ]


def _end_problems(edge: EdgeSpec, path: Path, names: list[str]) -> list[Problem]:
    known = ", ".join(f'"{name}"' for name in names)
    return [
        Problem(
            (*path, key),
            f'edge "{edge.name}" names stage "{name}", which does not exist{did_you_mean(name, names)}; '
            f"the stages are: {known}",
        )
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


def _output_problems(stages: list[tuple[Path, StageSpec]], graph: Graph, preset: Preset | None) -> list[Problem]:
    producers = {edge.from_ for edge in graph.edges}
    return [
        Problem(
            path,
            f'stage "{stage.name}" feeds no other stage and has no output, so nobody would get what it makes; '
            "add output: {modality: …} or an edge from it",
        )
        for path, stage in stages
        if stage.name not in producers and output_of(stage, graph, preset) is None
    ]

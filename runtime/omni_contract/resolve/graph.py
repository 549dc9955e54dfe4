"""The stage graph of a model: the file's stages laid over its family's preset, in topological order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omni_contract.api.v1alpha1 import ENGINE_FIELDS, EdgeSpec, OmniModelSpec, OutputSpec, StageSpec
from omni_contract.presets import PRESETS, Preset


@dataclass(frozen=True)
class Graph:
    """Stages and the edges between them, presets merged. Edges may name unknown stages until the checks have passed."""

    stages: tuple[StageSpec, ...]
    edges: tuple[EdgeSpec, ...]

    def in_order(self) -> tuple[StageSpec, ...]:
        """Producers before consumers, otherwise as in the file; raises CycleError if there is no such order."""
        waiting, ordered = list(self.stages), list[StageSpec]()
        while waiting:
            names = {stage.name for stage in waiting}
            blocked = {edge.to for edge in self.edges if edge.from_ in names}
            free = next((stage for stage in waiting if stage.name not in blocked), None)
            if free is None:
                raise CycleError(tuple(sorted(names)))
            waiting.remove(free)
            ordered.append(free)
        return tuple(ordered)


class CycleError(ValueError):
    """Some stages wait for each other; `stages` has their names."""

    def __init__(self, stages: tuple[str, ...]) -> None:
        super().__init__(f"the stages {', '.join(stages)} wait for each other")
        self.stages = stages


def preset_of(spec: OmniModelSpec) -> Preset | None:
    """The family's preset; the rules have checked that the family exists."""
    return PRESETS[spec.family] if spec.family else None


def replaces_preset(spec: OmniModelSpec, preset: Preset) -> bool:
    """Whether the file's stages are a graph of their own: one of their names is not in the preset."""
    known = {stage.name for stage in preset.stages}
    return any(stage.name not in known for stage in spec.stages)


def stage_graph(spec: OmniModelSpec, preset: Preset | None) -> Graph:
    """The model's whole graph: the file's own, or the preset with the file's fields over it."""
    if preset is None or replaces_preset(spec, preset):
        return Graph(spec.stages, spec.edges)
    return Graph(_laid_over(preset.stages, spec.stages), _edges_laid_over(preset.edges, spec.edges))


def _laid_over(preset: Sequence[StageSpec], own: Sequence[StageSpec]) -> tuple[StageSpec, ...]:
    overrides = {stage.name: stage for stage in own}
    return tuple(_stage(stage, overrides.get(stage.name)) for stage in preset)


def _stage(preset: StageSpec, own: StageSpec | None) -> StageSpec:
    if own is None:
        return preset
    lower, upper = preset.model_dump(exclude_unset=True), own.model_dump(exclude_unset=True)
    if own.engine and preset.engine and own.engine.kind != preset.engine.kind:
        lower = {key: value for key, value in lower.items() if key not in ENGINE_FIELDS}
    return StageSpec.model_validate(_merged(lower, upper))


def _edges_laid_over(preset: Sequence[EdgeSpec], own: Sequence[EdgeSpec]) -> tuple[EdgeSpec, ...]:
    edges = {edge.name: edge for edge in preset}
    for edge in own:
        lower = edges[edge.name].model_dump(exclude_unset=True) if edge.name in edges else {}
        edges[edge.name] = EdgeSpec.model_validate(_merged(lower, edge.model_dump(exclude_unset=True)))
    return tuple(edges.values())


def _merged(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """`upper` over `lower`, map by map; lists and scalars replace."""
    merged = dict(lower)
    for key, value in upper.items():
        both_maps = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merged(merged[key], value) if both_maps else value
    return merged


def output_of(stage: StageSpec, graph: Graph, preset: Preset | None) -> OutputSpec | None:
    """What the stage gives the client. A family's last stage gives the family's modality unless the file says else."""
    is_last = all(edge.from_ != stage.name for edge in graph.edges)
    if stage.output is None and preset and is_last:
        return OutputSpec(modality=preset.modality)
    return stage.output

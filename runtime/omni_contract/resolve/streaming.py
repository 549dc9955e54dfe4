"""Why an edge of a graph cannot stream: its engines work whole, or stages would wait for each other for ever."""

from collections.abc import Iterator, Mapping

from omni_contract.api.problems import Path, Problem
from omni_contract.api.v1alpha1 import EdgeSpec, EngineKind, OmniModelSpec
from omni_contract.resolve.graph import Graph

WORKS_WHOLE: frozenset[EngineKind] = frozenset({"diffusion"})
"""Engines that neither give nor take a payload in parts."""


def streaming_problems(spec: OmniModelSpec, graph: Graph) -> list[Problem]:
    own: Mapping[str, Path] = {edge.name: ("spec", "edges", index) for index, edge in enumerate(spec.edges)}
    return [
        Problem((*own.get(edge.name, ("spec", "edges")), "streaming"), f'edge "{edge.name}" {reason}')
        for edge in graph.edges
        if edge.streams
        for reason in _reasons(edge, graph)
    ]


def _reasons(edge: EdgeSpec, graph: Graph) -> Iterator[str]:
    engines = {stage.name: stage.engine for stage in graph.stages}
    for name in (edge.from_, edge.to):
        engine = engines.get(name)
        if engine is not None and engine.kind in WORKS_WHOLE:
            yield f'streams, but the {engine.kind} engine of stage "{name}" works on whole payloads; remove streaming'
    streaming = edge.streaming
    if streaming and streaming.initial_chunk_frames and streaming.initial_chunk_frames > streaming.chunk_frames:
        yield (
            f"has a first chunk of {streaming.initial_chunk_frames} frames, and its chunks have "
            f"{streaming.chunk_frames}; lower initialChunkFrames or raise chunkFrames"
        )
    if (whole := _whole_way_round(edge, graph)) is not None:
        yield (
            f'streams, but "{edge.to}" also waits for "{whole.name}", which is whole only once "{edge.from_}" has '
            f'ended, and that waits for "{edge.to}" to read; let "{whole.name}" stream, too, or remove streaming'
        )


def _whole_way_round(edge: EdgeSpec, graph: Graph) -> EdgeSpec | None:
    """A whole edge on another way from the producer to the consumer, which cannot begin before it has come."""
    after, before = _reached(edge.from_, graph), _leading_to(edge.to, graph)
    return next(
        (other for other in graph.edges if not other.streams and other.from_ in after and other.to in before), None
    )


def _reached(stage: str, graph: Graph) -> frozenset[str]:
    return _closure(stage, [(edge.from_, edge.to) for edge in graph.edges])


def _leading_to(stage: str, graph: Graph) -> frozenset[str]:
    return _closure(stage, [(edge.to, edge.from_) for edge in graph.edges])


def _closure(start: str, steps: list[tuple[str, str]]) -> frozenset[str]:
    """The start and all that can be reached from it."""
    found = frozenset({start})
    while not found.issuperset(grown := {target for source, target in steps if source in found}):
        found |= grown
    return found

"""Rules about edges."""

from omni_contract.api.rules.rule import FieldRule, ItemRule, Rule
from omni_contract.api.v1alpha1 import EdgeSpec, OmniModelSpec

EDGE = ("spec", "edges", "[]")


def _names_stages(spec: OmniModelSpec, edge: EdgeSpec) -> bool:
    names = {stage.name for stage in spec.stages}
    return spec.family is not None or {edge.from_, edge.to} <= names


def _starts_small(edge: EdgeSpec) -> bool:
    """Where a preset may lie under the file, only of what the file itself says."""
    streaming = edge.streaming
    if streaming is None or streaming.initial_chunk_frames is None or "chunk_frames" not in streaming.model_fields_set:
        return True
    return streaming.initial_chunk_frames <= streaming.chunk_frames


STREAMS = "has(self.streaming) && (!has(self.streaming.enabled) || self.streaming.enabled)"

EDGE_RULES: tuple[Rule, ...] = (
    ItemRule(
        at=("spec",),
        items="edges",
        unless="has(self.family)",
        cel="self.stages.exists(stage, stage.name == item.from) && self.stages.exists(stage, stage.name == item.to)",
        holds=_names_stages,
        message='edge "{item.from}->{item.to}" names a stage that does not exist; add the stage or correct the name',
    ),
    FieldRule(
        at=EDGE,
        cel="self.from != self.to",
        holds=lambda edge: edge.from_ != edge.to,
        message='stage "{self.from}" has an edge to itself; feedback belongs inside an engine, so remove the edge',
    ),
    FieldRule(
        at=EDGE,
        pointer="retain",
        cel="!has(self.retain) || self.retain != 'terminal' || !has(self.connector) || self.connector != 'inline'",
        holds=lambda edge: edge.retain != "terminal" or edge.connector != "inline",
        message='edge "{self.from}->{self.to}" travels inside the control message (connector inline), so its producer '
        "has nothing to retain; remove retain or use connector grpc",
    ),
    FieldRule(
        at=EDGE,
        pointer="connector",
        cel=f"!({STREAMS}) || !has(self.connector) || self.connector != 'inline'",
        holds=lambda edge: not edge.streams or edge.connector != "inline",
        message='edge "{self.from}->{self.to}" streams, and connector inline carries whole payloads only; use auto or '
        "grpc",
    ),
    FieldRule(
        at=EDGE,
        pointer="retain",
        cel=f"!({STREAMS}) || !has(self.retain) || self.retain != 'terminal'",
        holds=lambda edge: not edge.streams or edge.retain != "terminal",
        message='edge "{self.from}->{self.to}" streams, so each chunk is dropped once it is read; remove retain',
    ),
    FieldRule(
        at=EDGE,
        pointer="streaming.initialChunkFrames",
        cel="!has(self.streaming) || !has(self.streaming.chunkFrames) || !has(self.streaming.initialChunkFrames) || "
        "self.streaming.initialChunkFrames <= self.streaming.chunkFrames",
        holds=_starts_small,
        message='edge "{self.from}->{self.to}": the first chunk must not be larger than the others; lower '
        "initialChunkFrames or raise chunkFrames",
    ),
)

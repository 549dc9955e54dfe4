"""Reading what a stage gives the client: whole, or part by part."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.chunk import chunk_of, is_chunk
from omni_contract.wire.codec import CodecError, decode
from omni_contract.wire.errors import TransferError
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Payload
from omni_runtime.orchestrator.graph import PlannedStage
from omni_runtime.orchestrator.made import Made, made_of
from omni_runtime.orchestrator.request import FinalChunk, FinalOutput
from omni_runtime.orchestrator.steps import Source

Fetch: TypeAlias = Callable[[wire.Handle, float], Awaitable[Payload]]
Release: TypeAlias = Callable[[wire.Handle], Awaitable[None]]
Answer: TypeAlias = FinalOutput | FinalChunk

PARTS_TAKEN_AT_ONCE = 8
"""A fraction of what a worker sends ahead, so that it never waits for a quick reader, and not for every part."""


async def read_answer(stage: PlannedStage, source: Source, fetch: Fetch, request_id: str, remaining_s: float) -> Answer:
    """Raises TransferError if the payload is gone or cannot be read."""
    try:
        payload = decode(source) if isinstance(source, bytes) else await fetch(source, remaining_s)
        return _answer(stage, payload)
    except CodecError as exc:
        raise TransferError(FINAL, request_id, str(exc)) from exc


def made_in(answer: Answer) -> Made:
    return made_of(answer.items if isinstance(answer, FinalChunk) else (answer.payload,))


def _answer(stage: PlannedStage, payload: Payload) -> Answer:
    modality = stage.modality or ""
    if not is_chunk(payload):
        return FinalOutput(stage.name, modality, payload)
    chunk = chunk_of(payload)
    return FinalChunk(stage.name, modality, chunk.items, chunk.is_last)

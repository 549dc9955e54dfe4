"""Streamed answers of the text endpoints: chunks as events, an end that the SDK waits for, or an error."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel

from omni_contract.wire.errors import OmniError
from omni_runtime.frontend.beginning import begun
from omni_runtime.frontend.errors import error_event
from omni_runtime.frontend.event_stream import EventStreamResponse
from omni_runtime.frontend.response_headers import headers_of

END = "data: [DONE]\n\n"
Admitted = TypeVar("Admitted")
Chunk = TypeVar("Chunk", bound=BaseModel)


async def streamed(
    request: Request,
    admitting: AbstractAsyncContextManager[Admitted],
    chunks_of: Callable[[Admitted], AsyncGenerator[Chunk, None]],
    seed_of: Callable[[Admitted], int],
    with_usage: bool,
) -> EventStreamResponse:
    answer = await begun(request, admitting, chunks_of)
    headers = headers_of(seed_of(answer.admitted), [])
    return EventStreamResponse(_events(answer.parts, with_usage), headers, answer.work)


async def _events(chunks: AsyncGenerator[Chunk, None], with_usage: bool) -> AsyncGenerator[str, None]:
    async with aclosing(chunks):
        try:
            async for chunk in chunks:
                yield _event(chunk, with_usage)
        except OmniError as exc:
            yield error_event(exc)
        else:
            yield END


def _event(chunk: BaseModel, with_usage: bool) -> str:
    """The SDK expects usage in each chunk if it has asked for it, null in all but the last."""
    left_out = None if with_usage else {"usage"}
    return f"data: {chunk.model_dump_json(exclude=left_out, exclude_unset=True)}\n\n"

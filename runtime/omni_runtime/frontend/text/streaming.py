"""Streamed answers of the text endpoints: chunks as events, an end that the SDK waits for, or an error."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel

from omni_contract.wire.errors import OmniError
from omni_runtime.frontend.disconnect import while_connected
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
    """Begins once the first chunk is there, so that what fails before it still has its status."""
    async with AsyncExitStack() as stack:
        admitted = await while_connected(request, stack.enter_async_context(admitting))
        chunks = await stack.enter_async_context(aclosing(chunks_of(admitted)))
        first = await while_connected(request, _first(chunks))
        kept = stack.pop_all()
    return EventStreamResponse(_events(first, chunks, kept, with_usage), headers_of(seed_of(admitted), []))


async def _first(chunks: AsyncGenerator[Chunk, None]) -> Chunk:
    return await anext(chunks)


async def _events(
    first: Chunk, rest: AsyncGenerator[Chunk, None], kept: AsyncExitStack, with_usage: bool
) -> AsyncGenerator[str, None]:
    async with kept:
        yield _event(first, with_usage)
        try:
            async for chunk in rest:
                yield _event(chunk, with_usage)
        except OmniError as exc:
            yield error_event(exc)
        else:
            yield END


def _event(chunk: BaseModel, with_usage: bool) -> str:
    """The SDK expects usage in each chunk if it has asked for it, null in all but the last."""
    left_out = None if with_usage else {"usage"}
    return f"data: {chunk.model_dump_json(exclude=left_out, exclude_unset=True)}\n\n"

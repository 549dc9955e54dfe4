"""POST /v1/chat/completions."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from omni_contract.wire.errors import OmniError
from omni_runtime.frontend.chat.answer import ChatCompletion, ChatCompletionChunk
from omni_runtime.frontend.chat.schema import ChatCompletionRequest
from omni_runtime.frontend.chat.service import ChatService
from omni_runtime.frontend.disconnect import while_connected
from omni_runtime.frontend.errors import error_event, error_responses
from omni_runtime.frontend.event_stream import EVENT_STREAM, EventStreamResponse
from omni_runtime.frontend.json_body import require_json
from omni_runtime.frontend.request_scope import context_of
from omni_runtime.frontend.response_headers import headers_of

END = "data: [DONE]\n\n"


def router(service: ChatService) -> APIRouter:
    routes = APIRouter(prefix="/v1/chat", tags=["chat"])

    @routes.post(
        "/completions",
        response_model=ChatCompletion,
        dependencies=[Depends(require_json)],
        responses=EVENT_STREAM | error_responses(400, 401, 404, 408, 413, 415, 429, 500, 503, 504),
    )
    async def complete(body: ChatCompletionRequest, request: Request) -> Response:
        if body.stream:
            return await _streamed(service, body, request)
        answer, replicas = await while_connected(request, service.answer(body, context_of(request)))
        return Response(
            answer.model_dump_json(), media_type="application/json", headers=headers_of(answer.seed, [replicas])
        )

    return routes


async def _streamed(service: ChatService, body: ChatCompletionRequest, request: Request) -> Response:
    """Begins once the first chunk is there, so that what fails before it still has its status."""
    async with AsyncExitStack() as stack:
        admitting = stack.enter_async_context(service.admitted(body, context_of(request)))
        chat = await while_connected(request, admitting)
        chunks = await stack.enter_async_context(aclosing(service.chunks(chat, body)))
        first = await while_connected(request, _first(chunks))
        kept = stack.pop_all()
    return EventStreamResponse(_events(first, chunks, kept, body.wants_usage), headers_of(chat.seed, []))


async def _first(chunks: AsyncGenerator[ChatCompletionChunk, None]) -> ChatCompletionChunk:
    return await anext(chunks)


async def _events(
    first: ChatCompletionChunk,
    rest: AsyncGenerator[ChatCompletionChunk, None],
    kept: AsyncExitStack,
    with_usage: bool,
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


def _event(chunk: ChatCompletionChunk, with_usage: bool) -> str:
    """The SDK expects usage in each chunk if it has asked for it, null in all but the last."""
    left_out = None if with_usage else {"usage"}
    return f"data: {chunk.model_dump_json(exclude=left_out, exclude_unset=True)}\n\n"

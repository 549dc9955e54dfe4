"""POST /v1/audio/transcriptions and POST /v1/audio/translations."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from typing import Any, TypeAlias

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response

from omni_contract.wire.errors import OmniError
from omni_runtime.frontend.disconnect import while_connected
from omni_runtime.frontend.errors import error_event, error_responses
from omni_runtime.frontend.event_stream import EVENT_STREAM, EventStreamResponse
from omni_runtime.frontend.form_body import form_body, form_of
from omni_runtime.frontend.request_scope import context_of
from omni_runtime.frontend.response_headers import headers_of
from omni_runtime.frontend.transcriptions.schema import (
    TextDeltaEvent,
    TextDoneEvent,
    Transcription,
    TranscriptionRequest,
    TranslationRequest,
)
from omni_runtime.frontend.transcriptions.service import TranscriptionService

Event: TypeAlias = TextDeltaEvent | TextDoneEvent
REFUSALS = error_responses(400, 401, 404, 408, 413, 415, 429, 500, 503, 504)
TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}}}
STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The text", "content": {"text/plain": {}, **EVENT_STREAM[200]["content"]}}
}


def router(service: TranscriptionService) -> APIRouter:
    routes = APIRouter(prefix="/v1/audio", tags=["audio"])

    @routes.post(
        "/transcriptions",
        response_model=Transcription,
        responses=STREAMED | REFUSALS,
        openapi_extra=form_body(TranscriptionRequest),
    )
    async def transcribe(request: Request) -> Response:
        body = await form_of(request, TranscriptionRequest)
        return await (_streamed if body.stream else _whole)(service, body, request)

    @routes.post(
        "/translations",
        response_model=Transcription,
        responses=TEXT | REFUSALS,
        openapi_extra=form_body(TranslationRequest),
    )
    async def translate(request: Request) -> Response:
        """Into English."""
        return await _whole(service, await form_of(request, TranslationRequest), request)

    return routes


async def _whole(service: TranscriptionService, body: TranslationRequest, request: Request) -> Response:
    answer, seed, replicas = await while_connected(request, service.answer(body, context_of(request)))
    headers = headers_of(seed, [replicas])
    if body.wants_text:
        return PlainTextResponse(answer.text, headers=headers)
    return Response(answer.model_dump_json(exclude_none=True), media_type="application/json", headers=headers)


async def _streamed(service: TranscriptionService, body: TranslationRequest, request: Request) -> Response:
    """Begins once there is text, so that what fails before it still has its status."""
    async with AsyncExitStack() as stack:
        admitting = stack.enter_async_context(service.admitted(body, context_of(request)))
        hearing = await while_connected(request, admitting)
        events = await stack.enter_async_context(aclosing(service.events(hearing)))
        first = await while_connected(request, _first(events))
        kept = stack.pop_all()
    return EventStreamResponse(_told(first, events, kept), headers_of(hearing.seed, []))


async def _first(events: AsyncGenerator[Event, None]) -> Event:
    return await anext(events)


async def _told(first: Event, rest: AsyncGenerator[Event, None], kept: AsyncExitStack) -> AsyncGenerator[str, None]:
    async with kept:
        yield _event(first)
        try:
            async for event in rest:
                yield _event(event)
        except OmniError as exc:
            yield error_event(exc)


def _event(event: Event) -> str:
    return f"event: {event.type}\ndata: {event.model_dump_json(exclude_none=True)}\n\n"

"""POST /v1/audio/transcriptions and POST /v1/audio/translations."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeAlias

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response

from omni_contract.wire.errors import OmniError
from omni_runtime.frontend.beginning import begun
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
    answer = await begun(request, service.admitted(body, context_of(request)), service.events)
    return EventStreamResponse(_told(answer.parts), headers_of(answer.admitted.seed, []), answer.work)


async def _told(events: AsyncGenerator[Event, None]) -> AsyncGenerator[str, None]:
    async with aclosing(events):
        try:
            async for event in events:
                yield _event(event)
        except OmniError as exc:
            yield error_event(exc)


def _event(event: Event) -> str:
    return f"event: {event.type}\ndata: {event.model_dump_json(exclude_none=True)}\n\n"

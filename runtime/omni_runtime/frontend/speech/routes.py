"""POST /v1/audio/speech and GET /v1/audio/voices."""

import base64
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any, TypeAlias

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from omni_contract.wire.errors import OmniError
from omni_runtime.frontend.answers import Ended
from omni_runtime.frontend.closing_stream import ClosingStream
from omni_runtime.frontend.disconnect import while_connected
from omni_runtime.frontend.errors import error_event, error_responses
from omni_runtime.frontend.event_stream import EventStreamResponse
from omni_runtime.frontend.json_body import require_json
from omni_runtime.frontend.request_scope import BrokenOffError, context_of
from omni_runtime.frontend.response_headers import headers_of
from omni_runtime.frontend.speech.schema import SpeechDeltaEvent, SpeechDoneEvent, SpeechRequest, VoicesResponse
from omni_runtime.frontend.speech.service import Speech, SpeechService, usage_of
from omni_runtime.frontend.voices import voices_of
from omni_runtime.media.audio import MEDIA_TYPES
from omni_runtime.orchestrator import Orchestrator

SAMPLE_RATE_HEADER = "x-omni-sample-rate"
Part: TypeAlias = bytes | Ended
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file, or events that hold it",
        "content": {kind: {} for kind in (*MEDIA_TYPES.values(), "text/event-stream")},
    }
}


def router(service: SpeechService, orchestrator: Orchestrator) -> APIRouter:
    routes = APIRouter(prefix="/v1/audio", tags=["audio"])

    @routes.post(
        "/speech",
        response_class=Response,
        dependencies=[Depends(require_json)],
        responses=ANSWERS | error_responses(400, 401, 404, 408, 413, 415, 429, 500, 503, 504),
    )
    async def speak(body: SpeechRequest, request: Request) -> Response:
        if body.stream is False and not body.wants_events:
            data, speech = await while_connected(request, service.whole(body, context_of(request)))
            return Response(data, media_type=MEDIA_TYPES[speech.file.format], headers=_headers(speech))
        return await _streamed(service, body, request)

    @routes.get("/voices", responses=error_responses(401))
    async def voices() -> VoicesResponse:
        """The names that requests may give; empty if the model does not say."""
        return VoicesResponse(voices=list(voices_of(orchestrator.table)))

    return routes


async def _streamed(service: SpeechService, body: SpeechRequest, request: Request) -> Response:
    """Begins once there is sound, so that what fails before it still has its status."""
    async with AsyncExitStack() as stack:
        admitting = stack.enter_async_context(service.admitted(body, context_of(request)))
        speech = await while_connected(request, admitting)
        parts = await stack.enter_async_context(aclosing(service.parts(speech)))
        first = await while_connected(request, _first(parts))
        kept = stack.pop_all()
    if body.wants_events:
        return EventStreamResponse(_events(_joined(first, parts, kept)), _headers(speech))
    data = _data(_joined(first, parts, kept))
    return ClosingStream(data, media_type=MEDIA_TYPES[speech.file.format], headers=_headers(speech))


async def _first(parts: AsyncGenerator[Part, None]) -> Part:
    return await anext(parts)


async def _joined(first: Part, rest: AsyncGenerator[Part, None], kept: AsyncExitStack) -> AsyncGenerator[Part, None]:
    async with kept:
        yield first
        async for part in rest:
            yield part


async def _data(parts: AsyncGenerator[Part, None]) -> AsyncGenerator[bytes, None]:
    """A file has no place for an error: one that breaks off must not look like a whole one."""
    async with aclosing(parts):
        try:
            async for part in parts:
                if isinstance(part, bytes):
                    yield part
        except OmniError as exc:
            raise BrokenOffError(exc) from exc


async def _events(parts: AsyncGenerator[Part, None]) -> AsyncGenerator[str, None]:
    async with aclosing(parts):
        try:
            async for part in parts:
                if isinstance(part, bytes):
                    yield _event(SpeechDeltaEvent(audio=base64.b64encode(part).decode()))
                else:
                    yield _event(SpeechDoneEvent(usage=usage_of(part)))
        except OmniError as exc:
            yield error_event(exc)


def _event(event: SpeechDeltaEvent | SpeechDoneEvent) -> str:
    return f"event: {event.type}\ndata: {event.model_dump_json()}\n\n"


def _headers(speech: Speech) -> Mapping[str, str]:
    """The rate, since samples alone do not say it."""
    return headers_of(speech.seed, []) | {SAMPLE_RATE_HEADER: str(speech.writer.sample_rate)}

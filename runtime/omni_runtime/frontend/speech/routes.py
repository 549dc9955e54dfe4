"""POST /v1/audio/speech and GET /v1/audio/voices."""

import base64
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from omni_contract.wire.errors import OmniError
from omni_runtime.frontend.answers import Ended
from omni_runtime.frontend.beginning import begun
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
    answer = await begun(request, service.admitted(body, context_of(request)), service.parts)
    speech, parts = answer.admitted, answer.parts
    if body.wants_events:
        return EventStreamResponse(_events(parts), _headers(speech), answer.work)
    return ClosingStream(_data(parts), MEDIA_TYPES[speech.file.format], _headers(speech), answer.work)


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

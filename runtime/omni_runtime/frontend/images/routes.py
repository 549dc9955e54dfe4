"""POST /v1/images/generations."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response

from omni_contract.wire.errors import OmniError
from omni_runtime.frontend.beginning import begun
from omni_runtime.frontend.disconnect import while_connected
from omni_runtime.frontend.errors import error_event, error_responses
from omni_runtime.frontend.event_stream import EVENT_STREAM, EventStreamResponse
from omni_runtime.frontend.images.schema import ImageGenerationRequest, ImagesResponse
from omni_runtime.frontend.images.service import ImageService, MadeImage, completed_event, response_of
from omni_runtime.frontend.json_body import require_json
from omni_runtime.frontend.request_scope import context_of
from omni_runtime.frontend.response_headers import headers_of


def router(service: ImageService) -> APIRouter:
    routes = APIRouter(prefix="/v1/images", tags=["images"])

    @routes.post(
        "/generations",
        response_model=ImagesResponse,
        dependencies=[Depends(require_json)],
        responses=EVENT_STREAM | error_responses(400, 401, 404, 408, 413, 415, 429, 500, 503, 504),
    )
    async def generate(body: ImageGenerationRequest, request: Request) -> Response:
        if body.stream:
            return await _streamed(service, body, request)
        images = await while_connected(request, service.make_all(body, context_of(request)))
        return JSONResponse(response_of(body, images).model_dump(), headers=_headers(images))

    return routes


async def _streamed(service: ImageService, body: ImageGenerationRequest, request: Request) -> Response:
    answer = await begun(request, service.making(body, context_of(request)), _in_order)
    return EventStreamResponse(_events(body, answer.parts), _headers([answer.first]), answer.work)


async def _in_order(tasks: Sequence[asyncio.Task[MadeImage]]) -> AsyncGenerator[MadeImage, None]:
    for task in tasks:
        yield await task


async def _events(body: ImageGenerationRequest, images: AsyncGenerator[MadeImage, None]) -> AsyncGenerator[str, None]:
    async with aclosing(images):
        try:
            async for image in images:
                yield _event(body, image)
        except OmniError as exc:
            yield error_event(exc)


def _headers(images: Sequence[MadeImage]) -> dict[str, str]:
    return headers_of(images[0].seed, (image.replicas for image in images))


def _event(body: ImageGenerationRequest, image: MadeImage) -> str:
    event = completed_event(body, image)
    return f"event: {event.type}\ndata: {event.model_dump_json()}\n\n"

"""POST /v1/images/generations."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response

from omni_contract.wire.errors import OmniError
from omni_runtime.frontend.disconnect import while_connected
from omni_runtime.frontend.errors import error_event, error_responses
from omni_runtime.frontend.event_stream import EVENT_STREAM, EventStreamResponse
from omni_runtime.frontend.images.schema import ImageGenerationRequest, ImagesResponse
from omni_runtime.frontend.images.service import ImageService, MadeImage, completed_event, response_of
from omni_runtime.frontend.json_body import require_json
from omni_runtime.frontend.request_scope import RequestContext, context_of
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
    """Begins once the first image is there, so that what fails before it still has its status."""
    async with AsyncExitStack() as stack:
        images = await stack.enter_async_context(aclosing(_in_order(service, body, context_of(request))))
        first = await while_connected(request, _first(images))
        kept = stack.pop_all()
    events = _events(body, first, images, kept)
    return EventStreamResponse(events, headers=_headers([first]))


async def _in_order(
    service: ImageService, body: ImageGenerationRequest, context: RequestContext
) -> AsyncGenerator[MadeImage, None]:
    async with service.making(body, context) as tasks:
        for task in tasks:
            yield await task


async def _first(images: AsyncIterator[MadeImage]) -> MadeImage:
    return await anext(images)


async def _events(
    body: ImageGenerationRequest, first: MadeImage, rest: AsyncIterator[MadeImage], kept: AsyncExitStack
) -> AsyncGenerator[str, None]:
    async with kept:
        yield _event(body, first)
        try:
            async for image in rest:
                yield _event(body, image)
        except OmniError as exc:
            yield error_event(exc)


def _headers(images: Sequence[MadeImage]) -> dict[str, str]:
    return headers_of(images[0].seed, (image.replicas for image in images))


def _event(body: ImageGenerationRequest, image: MadeImage) -> str:
    event = completed_event(body, image)
    return f"event: {event.type}\ndata: {event.model_dump_json()}\n\n"

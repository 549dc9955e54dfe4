"""POST /v1/completions."""

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from omni_runtime.frontend.completions.schema import Completion, CompletionRequest
from omni_runtime.frontend.completions.service import CompletionService
from omni_runtime.frontend.disconnect import while_connected
from omni_runtime.frontend.errors import error_responses
from omni_runtime.frontend.event_stream import EVENT_STREAM
from omni_runtime.frontend.json_body import require_json
from omni_runtime.frontend.request_scope import context_of
from omni_runtime.frontend.response_headers import headers_of
from omni_runtime.frontend.text.streaming import streamed


def router(service: CompletionService) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["completions"])

    @routes.post(
        "/completions",
        response_model=Completion,
        dependencies=[Depends(require_json)],
        responses=EVENT_STREAM | error_responses(400, 401, 404, 408, 413, 415, 429, 500, 503, 504),
    )
    async def complete(body: CompletionRequest, request: Request) -> Response:
        context = context_of(request)
        if body.stream:
            return await streamed(
                request,
                service.admitted(body, context),
                lambda writing: service.chunks(writing, body),
                lambda writing: writing.seed,
                body.wants_usage,
            )
        answer, seed, replicas = await while_connected(request, service.answer(body, context))
        headers = headers_of(seed, [replicas])
        return Response(answer.model_dump_json(), media_type="application/json", headers=headers)

    return routes

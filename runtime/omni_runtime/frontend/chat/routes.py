"""POST /v1/chat/completions."""

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from omni_runtime.frontend.chat.answer import ChatCompletion
from omni_runtime.frontend.chat.schema import ChatCompletionRequest
from omni_runtime.frontend.chat.service import ChatService
from omni_runtime.frontend.disconnect import while_connected
from omni_runtime.frontend.errors import error_responses
from omni_runtime.frontend.event_stream import EVENT_STREAM
from omni_runtime.frontend.json_body import require_json
from omni_runtime.frontend.request_scope import context_of
from omni_runtime.frontend.response_headers import headers_of
from omni_runtime.frontend.text.streaming import streamed


def router(service: ChatService) -> APIRouter:
    routes = APIRouter(prefix="/v1/chat", tags=["chat"])

    @routes.post(
        "/completions",
        response_model=ChatCompletion,
        dependencies=[Depends(require_json)],
        responses=EVENT_STREAM | error_responses(400, 401, 404, 408, 413, 415, 429, 500, 503, 504),
    )
    async def complete(body: ChatCompletionRequest, request: Request) -> Response:
        context = context_of(request)
        if body.stream:
            return await streamed(
                request,
                service.admitted(body, context),
                lambda chat: service.chunks(chat, body),
                lambda chat: chat.seed,
                body.wants_usage,
            )
        answer, replicas = await while_connected(request, service.answer(body, context))
        headers = headers_of(answer.seed, [replicas])
        return Response(answer.model_dump_json(), media_type="application/json", headers=headers)

    return routes

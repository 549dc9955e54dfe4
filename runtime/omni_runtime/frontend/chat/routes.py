"""POST /v1/chat/completions."""

from collections.abc import Mapping

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from omni_runtime.frontend.chat.answer import ChatCompletion
from omni_runtime.frontend.chat.pictures import PictureChatService, paints
from omni_runtime.frontend.chat.schema import ChatCompletionRequest
from omni_runtime.frontend.chat.service import ChatService
from omni_runtime.frontend.disconnect import while_connected
from omni_runtime.frontend.errors import error_responses
from omni_runtime.frontend.event_stream import EVENT_STREAM
from omni_runtime.frontend.json_body import require_json
from omni_runtime.frontend.request_scope import context_of
from omni_runtime.frontend.response_headers import headers_of
from omni_runtime.frontend.text.streaming import streamed
from omni_runtime.orchestrator import Orchestrator


def router(service: ChatService, painter: PictureChatService, orchestrator: Orchestrator) -> APIRouter:
    routes = APIRouter(prefix="/v1/chat", tags=["chat"])

    @routes.post(
        "/completions",
        response_model=ChatCompletion,
        dependencies=[Depends(require_json)],
        responses=EVENT_STREAM | error_responses(400, 401, 404, 408, 413, 415, 429, 500, 503, 504),
    )
    async def complete(body: ChatCompletionRequest, request: Request) -> Response:
        context, table = context_of(request), orchestrator.table
        if paints(table):
            answer, replicas = await while_connected(request, painter.answer(body, table, context))
            return _whole(answer, replicas)
        if body.stream:
            return await streamed(
                request,
                service.admitted(body, context),
                lambda chat: service.chunks(chat, body),
                lambda chat: chat.seed,
                body.wants_usage,
            )
        answer, replicas = await while_connected(request, service.answer(body, context))
        return _whole(answer, replicas)

    return routes


def _whole(answer: ChatCompletion, replicas: Mapping[str, str]) -> Response:
    headers = headers_of(answer.seed, [replicas])
    return Response(answer.model_dump_json(), media_type="application/json", headers=headers)

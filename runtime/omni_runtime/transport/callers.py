"""Who may call a worker: an authority often signs for more than one model, so a good signature alone is not enough."""

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from omni_contract.wire.names import FRONTEND, certificate_name
from omni_runtime.transport.certificate import is_made_out_to

logger = logging.getLogger(__name__)

OPEN_TO_STAGES = frozenset({"Fetch", "Read", "Release", "Check", "Watch"})
"""What the stages of a model may ask of each other: payloads and health. Everything else is for its frontends."""

BEHAVIOURS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")

NAMES = "x509_subject_alternative_name"


class KnownCallers(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc is untyped
    """Lets in callers whose certificate is made out to a component of this model."""

    def __init__(self, model: str, namespace: str) -> None:
        self._frontend = certificate_name(FRONTEND, model, namespace)
        _, _, self._domain = self._frontend.partition(".")

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler | None]],
        details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        handler = await continuation(details)
        if handler is None:
            return None
        method = details.method.rpartition("/")[2]

        async def check(context: grpc.aio.ServicerContext) -> None:
            names = tuple(name.decode() for name in context.auth_context().get(NAMES, ()))
            if not self._may_call(method, names):
                await self._refuse(method, names, context)

        return handler._replace(
            **{
                kind: _checked(behaviour, check)
                for kind in BEHAVIOURS
                if (behaviour := getattr(handler, kind)) is not None
            }
        )

    def _may_call(self, method: str, names: tuple[str, ...]) -> bool:
        if is_made_out_to(self._frontend, names):
            return True
        return method in OPEN_TO_STAGES and any(name.partition(".")[2] == self._domain for name in names)

    async def _refuse(self, method: str, names: tuple[str, ...], context: grpc.aio.ServicerContext) -> None:
        allowed = f"*.{self._domain}" if method in OPEN_TO_STAGES else self._frontend
        reason = (
            f"{method} is for {allowed}, but the caller's certificate is made out to {', '.join(names) or 'nobody'}"
        )
        logger.warning("refused %s: %s", context.peer(), reason)
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, reason)


def _checked(behaviour: Any, check: Callable[[grpc.aio.ServicerContext], Awaitable[None]]) -> Any:
    """The same behaviour in the same form, since gRPC treats generators and coroutines differently."""
    if inspect.isasyncgenfunction(behaviour):

        async def stream(request: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
            await check(context)
            async for reply in behaviour(request, context):
                yield reply

        return stream

    async def call(request: Any, context: grpc.aio.ServicerContext) -> Any:
        await check(context)
        return await behaviour(request, context)

    return call

"""Reads the whole body before anything else runs: at most so many bytes, within so much time."""

import asyncio
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omni_contract.api.v1alpha1 import FrontendLimits
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.frontend.errors import error_response
from omni_runtime.frontend.request_scope import ClientGoneError


class BoundedBody:
    """Refuses a body that is too large (413) or too slow (408); a later disconnect still reaches the endpoint."""

    def __init__(self, app: ASGIApp, limits: Callable[[], FrontendLimits], timeout_s: float) -> None:
        self._app = app
        self._limits = limits
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await self._read(Headers(scope=scope), receive)
        except OmniError as exc:
            await error_response(exc)(scope, receive, send)
        else:
            await self._app(scope, _replay(body, receive), send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes:
        most = self._limits().max_body_bytes
        if (length := headers.get("content-length", "")).isdigit() and int(length) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await _read_all(receive, most)
        except TimeoutError:
            text = f"the body did not come within {self._timeout_s:g} s"
            raise OmniError(ErrorCode.BODY_TIMEOUT, text) from None


async def _read_all(receive: Receive, most: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        body += message.get("body", b"")
        if len(body) > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body once more, then what the connection says (that it was closed)."""
    is_given = False

    async def replayed() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _too_large(most: int) -> OmniError:
    return OmniError(ErrorCode.PAYLOAD_TOO_LARGE, f"the body has more than {most} bytes, which is this model's limit")

"""The outermost layer of each HTTP request: its id, its one log line, its metrics, and the last catch of a defect."""

import logging
import re
import secrets
import time
from dataclasses import dataclass, replace

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omni_contract.wire.errors import HTTP_STATUS, ErrorCode, OmniError
from omni_contract.wire.logs import log_fields
from omni_contract.wire.names import REQUEST_ID_HEADER
from omni_runtime.frontend.errors import error_response
from omni_runtime.frontend.metrics import FrontendMetrics
from omni_runtime.tracing.spans import NO_SPAN, REQUEST_ID, UNTRACED, Span, Tracing

logger = logging.getLogger(__name__)

USABLE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
QUIET = frozenset({"/livez", "/readyz", "/healthz", "/metrics"})
"""Asked every few seconds; logging them would bury the rest."""


class ClientGoneError(Exception):
    """The client has closed the connection before it was answered."""


class BrokenOffError(Exception):
    """An answer cannot go on, and has no place to say so: its connection is cut, so that it does not look whole."""

    def __init__(self, cause: OmniError) -> None:
        super().__init__(cause.message)
        self.code = cause.code


@dataclass(frozen=True)
class RequestContext:
    """What an endpoint passes on about its HTTP request."""

    request_id: str
    traceparent: str
    tenant: str = ""
    """Whose API key it came with, empty without authentication."""


def note_tenant(scope: Scope, tenant: str) -> None:
    scope["state"]["context"] = replace(scope["state"]["context"], tenant=tenant)


def context_of(request: Request) -> RequestContext:
    context: RequestContext = request.state.context
    return context


class RequestScope:
    def __init__(self, app: ASGIApp, metrics: FrontendMetrics, tracing: Tracing = UNTRACED) -> None:
        self._app = app
        self._metrics = metrics
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        context = _context(Headers(scope=scope))
        span = self._span(scope, context)
        context = replace(context, traceparent=span.traceparent)
        scope.setdefault("state", {})["context"] = context
        answer = _Answer(send, context.request_id)
        began_s = time.monotonic()
        with log_fields(request_id=context.request_id):
            try:
                await self._guarded(scope, receive, answer)
            finally:
                self._account(scope, answer.status, time.monotonic() - began_s)
                _end(span, answer.status)

    def _span(self, scope: Scope, context: RequestContext) -> Span:
        """Probes and metrics would bury the rest."""
        if scope["path"] in QUIET:
            return NO_SPAN
        attributes = {REQUEST_ID: context.request_id, "http.request.method": scope["method"], "url.path": scope["path"]}
        return self._tracing.start(f"{scope['method']} {scope['path']}", context.traceparent, attributes, "server")

    async def _guarded(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        """Nothing that goes wrong in one request reaches the server."""
        try:
            await self._app(scope, receive, answer.send)
        except ClientGoneError:
            answer.status = HTTP_STATUS[ErrorCode.CANCELLED]
        except BrokenOffError as exc:
            # Returning without the end of the answer makes the server close the connection.
            logger.warning("%s broke off: %s", scope["path"], exc)
            answer.status = HTTP_STATUS[exc.code]
        except Exception:
            logger.exception("defect while answering %s", scope["path"])
            if not answer.status:
                defect = OmniError(ErrorCode.INTERNAL, "the server failed; its log has the cause under this request id")
                await error_response(defect)(scope, receive, answer.send)

    def _account(self, scope: Scope, status: int, took_s: float) -> None:
        route = scope.get("route")
        endpoint = getattr(route, "path", "unknown")
        code = status or HTTP_STATUS[ErrorCode.CANCELLED]
        self._metrics.answered(endpoint, code, took_s)
        level = logging.DEBUG if scope["path"] in QUIET else logging.INFO
        logger.log(level, "%s %s %d %.1f ms", scope["method"], scope["path"], code, took_s * 1000)


def _end(span: Span, status: int) -> None:
    code = status or HTTP_STATUS[ErrorCode.CANCELLED]
    span.end(str(code) if code >= 500 else "", {"http.response.status_code": code})


class _Answer:
    """Sees the answer go by: notes its status and puts the request id on it."""

    def __init__(self, send: Send, request_id: str) -> None:
        self.status = 0
        self._send = send
        self._request_id = request_id

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)[REQUEST_ID_HEADER] = self._request_id
        await self._send(message)


def _context(headers: Headers) -> RequestContext:
    """Ids that could not stand in a log line are replaced, not refused: a client cannot help what its proxy adds."""
    request_id = headers.get(REQUEST_ID_HEADER, "")
    traceparent = headers.get("traceparent", "")
    return RequestContext(
        request_id=request_id if USABLE_ID.fullmatch(request_id) else f"req-{secrets.token_hex(12)}",
        traceparent=traceparent if TRACEPARENT.fullmatch(traceparent) else "",
    )

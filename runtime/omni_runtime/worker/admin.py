"""The admin port: what `control.py` can do, over plain HTTP, for people with curl. Off unless a port is given.

Served by the standard library on threads of its own, so that no web framework is needed beside the engine.
"""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from omni_runtime.worker.control import Control, ControlError, Refusal
from omni_runtime.worker.errors import ListenError
from omni_runtime.worker.settings import AdminAddress

DEFAULT_SLEEP_TIMEOUT_S = 60.0
DEFAULT_DRAIN_TIMEOUT_S = 60.0
DEFAULT_PROFILE_STEPS = 10

STATUS: Mapping[Refusal, HTTPStatus] = {
    Refusal.INVALID: HTTPStatus.BAD_REQUEST,
    Refusal.WRONG_STATE: HTTPStatus.CONFLICT,
    Refusal.STILL_BUSY: HTTPStatus.CONFLICT,
    Refusal.NOT_SUPPORTED: HTTPStatus.NOT_IMPLEMENTED,
    Refusal.FAILED: HTTPStatus.INTERNAL_SERVER_ERROR,
}

Answer: TypeAlias = Mapping[str, Any]
Query: TypeAlias = Mapping[str, str]


class HttpError(Exception):
    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


async def _sleep(control: Control, query: Query) -> Answer:
    freed = await control.sleep(_number(query, "level", 1, int), _number(query, "timeout", DEFAULT_SLEEP_TIMEOUT_S))
    return {"freed_bytes": freed}


async def _wake(control: Control, query: Query) -> Answer:
    await control.wake()
    return {}


async def _start_profile(control: Control, query: Query) -> Answer:
    return {"trace": str(await control.start_profile(_number(query, "steps", DEFAULT_PROFILE_STEPS, int)))}


async def _stop_profile(control: Control, query: Query) -> Answer:
    profile = await control.stop_profile()
    return {"trace": str(profile.trace), "steps": profile.steps}


async def _reset_cache(control: Control, query: Query) -> Answer:
    return {"entries": await control.reset_cache()}


async def _drain(control: Control, query: Query) -> Answer:
    return {"left_running": await control.drain(_number(query, "timeout", DEFAULT_DRAIN_TIMEOUT_S))}


async def _stats(control: Control, query: Query) -> Answer:
    return asdict(control.stats())


Route: TypeAlias = Callable[[Control, Query], Awaitable[Answer]]

ROUTES: Mapping[str, tuple[str, Route, tuple[str, ...]]] = {
    "/sleep": ("POST", _sleep, ("level", "timeout")),
    "/wake": ("POST", _wake, ()),
    "/profile/start": ("POST", _start_profile, ("steps",)),
    "/profile/stop": ("POST", _stop_profile, ()),
    "/cache/reset": ("POST", _reset_cache, ()),
    "/drain": ("POST", _drain, ("timeout",)),
    "/stats": ("GET", _stats, ()),
}
"""Method, what answers, and the query's fields, by path."""


async def answer(control: Control, method: str, target: str) -> tuple[HTTPStatus, Answer]:
    """The whole answer to one request, whatever comes of it."""
    try:
        return HTTPStatus.OK, await _routed(control, method, target)
    except HttpError as error:
        return error.status, _envelope(error.status, error.code, str(error))
    except ControlError as error:
        status = STATUS[error.refusal]
        return status, _envelope(status, error.refusal, str(error))


async def _routed(control: Control, method: str, target: str) -> Answer:
    url = urlsplit(target)
    if url.path not in ROUTES:
        known = ", ".join(ROUTES)
        raise HttpError(HTTPStatus.NOT_FOUND, "not_found", f"there is no {url.path}; there is {known}")
    wanted, route, fields = ROUTES[url.path]
    if method != wanted:
        text = f"{url.path} takes {wanted}, not {method}"
        raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", text)
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    for name in query:
        if name not in fields:
            raise ControlError(
                Refusal.INVALID, f'{url.path} has no field "{name}"; it takes {", ".join(fields) or "none"}'
            )
    return await route(control, query)


def _number(query: Query, name: str, default: Any, kind: type[Any] = float) -> Any:
    text = query.get(name)
    try:
        number = default if text is None else kind(text)
    except ValueError:
        number = -1
    if not 0 <= number < float("inf"):
        raise ControlError(Refusal.INVALID, f"{name} is {text!r}; it must be a number from 0")
    return number


def _envelope(status: HTTPStatus, code: str, message: str) -> Answer:
    """As the frontend's errors."""
    kind = "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: AdminAddress, ask: Callable[[str, str], tuple[HTTPStatus, Answer]]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self.ask = ask
        super().__init__((address.host, address.port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        status, body = self.server.ask(self.command, self.path)
        data = json.dumps(body).encode() + b"\n"
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """What the calls do is in the log already."""


@asynccontextmanager
async def serving_admin(control: Control, address: AdminAddress | None) -> AsyncIterator[None]:
    """Nothing is served without an address; raises ListenError if it is not free."""
    if address is None:
        yield
        return
    loop = asyncio.get_running_loop()

    def ask(method: str, target: str) -> tuple[HTTPStatus, Answer]:
        return asyncio.run_coroutine_threadsafe(answer(control, method, target), loop).result()

    try:
        server = _Server(address, ask)
    except OSError as error:
        raise ListenError(f"cannot serve the admin port {address.host}:{address.port}: {error.strerror}") from error
    threading.Thread(target=server.serve_forever, name="admin-port", daemon=True).start()
    try:
        yield
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()

"""A small HTTP port for people with curl: JSON answers, no framework, off unless a port is given.

Served by the standard library on threads of its own; what is asked runs on the event loop of the process.
"""

import asyncio
import json
import socket
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

DEFAULT_ADMIN_HOST = "127.0.0.1"

Answer: TypeAlias = Mapping[str, Any]
Respond: TypeAlias = Callable[[str, str], Awaitable[tuple[HTTPStatus, Answer]]]
"""The whole answer to a method and a target, whatever comes of it."""


@dataclass(frozen=True)
class AdminAddress:
    """Whoever reaches it may let workers sleep or drain: only this host, unless somebody says otherwise."""

    host: str
    port: int


class AdminPortError(Exception):
    """The port cannot be served; the message says which, and why."""


def add_admin_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--admin-port", type=int, help="serve the control calls over HTTP on this port")
    parser.add_argument(
        "--admin-host", default=DEFAULT_ADMIN_HOST, help="address of the admin port (default: %(default)s)"
    )


def admin_address(arguments: Namespace) -> AdminAddress | None:
    return None if arguments.admin_port is None else AdminAddress(arguments.admin_host, arguments.admin_port)


class HttpError(Exception):
    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    @property
    def answer(self) -> tuple[HTTPStatus, Answer]:
        return self.status, envelope(self.status, self.code, str(self))


def envelope(status: HTTPStatus, code: str, message: str) -> Answer:
    """As the frontend's errors."""
    kind = "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@asynccontextmanager
async def serving(address: AdminAddress | None, respond: Respond) -> AsyncIterator[None]:
    """Nothing is served without an address; raises AdminPortError if it is not free."""
    if address is None:
        yield
        return
    loop = asyncio.get_running_loop()

    async def answer(method: str, target: str) -> tuple[HTTPStatus, Answer]:
        return await respond(method, target)

    def ask(method: str, target: str) -> tuple[HTTPStatus, Answer]:
        return asyncio.run_coroutine_threadsafe(answer(method, target), loop).result()

    try:
        server = _Server(address, ask)
    except OSError as error:
        text = f"cannot serve the admin port {address.host}:{address.port}: {error.strerror}"
        raise AdminPortError(text) from error
    threading.Thread(target=server.serve_forever, name="admin-port", daemon=True).start()
    try:
        yield
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()


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
        status, body = self._from_elsewhere() or self._asked()
        data = json.dumps(body).encode() + b"\n"
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _asked(self) -> tuple[HTTPStatus, Answer]:
        try:
            return self.server.ask(self.command, self.path)
        except CancelledError:
            return HttpError(HTTPStatus.SERVICE_UNAVAILABLE, "stage_unavailable", "the process ends").answer

    def _from_elsewhere(self) -> tuple[HTTPStatus, Answer] | None:
        """A page in a browser of this host can send POSTs to it; browsers say then whose page it is."""
        if "origin" not in self.headers:
            return None
        return HttpError(HTTPStatus.FORBIDDEN, "forbidden", "this port takes no calls from web pages").answer

    def log_message(self, format: str, *args: object) -> None:
        """What the calls do is in the log already."""

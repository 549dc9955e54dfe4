"""A plain HTTP proxy in front of an API server, which counts the calls that pass and makes some of them go wrong."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web

from tests.cluster.control import ControlPlane

HOP_BY_HOP = {"connection", "content-encoding", "content-length", "host", "keep-alive", "transfer-encoding"}

SESSION = web.AppKey("session", aiohttp.ClientSession)


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    is_watch: bool

    @property
    def is_write(self) -> bool:
        """Of something that is no lease."""
        return self.method != "GET" and "/leases" not in self.path


@dataclass(frozen=True)
class Answer:
    """What the caller gets in place of the server's answer."""

    status: int
    message: str
    headers: dict[str, str] = field(default_factory=dict)


Fault = Callable[[Call], Answer | None]


@dataclass
class FaultProxy:
    """`fault` may answer in the server's place; `after` is told of each call once the server has answered it."""

    plane: ControlPlane
    fault: Fault = lambda call: None
    after: Callable[[Call], None] = lambda call: None
    calls: list[Call] = field(default_factory=list)
    port: int = 0
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _streams: list[web.BaseRequest] = field(default_factory=list)

    def kubeconfig(self, path: Path, of: Path) -> Path:
        """Another kubeconfig's user, through this proxy."""
        config = json.loads(of.read_text())
        config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self.port}"}
        path.write_text(json.dumps(config))
        return path

    def writes(self) -> list[Call]:
        return [call for call in self.calls if call.is_write]

    def cut_streams(self) -> None:
        """Every watch breaks off, as when a load balancer has lost its connections."""
        for request in list(self._streams):
            transport = request.transport
            if transport is not None:
                self.loop.call_soon_threadsafe(transport.abort)

    # ---- inside

    async def handle(self, request: web.Request) -> web.StreamResponse:
        call = Call(request.method, request.path, request.query.get("watch") in ("true", "True", "1"))
        self.calls.append(call)
        answer = self.fault(call)
        if answer is not None:
            return _refusal(call, answer)
        try:
            return await self._forward(request, call)
        except aiohttp.ClientError as problem:
            return web.json_response({"kind": "Status", "message": str(problem), "code": 502}, status=502)

    async def _forward(self, request: web.Request, call: Call) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        url, body = self.plane.server + str(request.rel_url), await request.read() or None
        async with request.app[SESSION].request(request.method, url, headers=headers, data=body) as upstream:
            kept = {name: value for name, value in upstream.headers.items() if name.lower() not in HOP_BY_HOP}
            response = web.StreamResponse(status=upstream.status, headers=kept)
            if not call.is_watch:
                answer = await upstream.read()
                self.after(call)
                response.content_length = len(answer)
                await response.prepare(request)
                await response.write(answer)
                return response
            await response.prepare(request)
            self._streams.append(request)
            try:
                async for chunk in upstream.content.iter_any():
                    await response.write(chunk)
            finally:
                self._streams.remove(request)
            return response


async def _end(runner: web.AppRunner) -> None:
    """Watches would be answered for ever, so their tasks are cancelled."""
    await runner.cleanup()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _refusal(call: Call, answer: Answer) -> web.Response:
    """As an API server words it; an expired version is told of in the stream."""
    status = {"kind": "Status", "message": answer.message, "code": answer.status}
    if call.is_watch and answer.status == 410:
        return web.Response(text=json.dumps({"type": "ERROR", "object": status}) + "\n")
    return web.json_response(status, status=answer.status, headers=answer.headers)


@contextmanager
def fault_proxy(plane: ControlPlane) -> Iterator[FaultProxy]:
    """In a thread of its own, so that a test may be as synchronous as it likes."""
    proxy = FaultProxy(plane)
    loop = proxy.loop
    thread = threading.Thread(target=loop.run_forever, name="fault proxy")
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(_serve(proxy), loop).result(10)
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(_end(runner), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _serve(proxy: FaultProxy) -> web.AppRunner:
    async def session(app: web.Application) -> object:
        context = ssl.create_default_context(cafile=str(proxy.plane.ca))
        limits = aiohttp.ClientTimeout(total=None)
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=limits, auto_decompress=True) as client:
            app[SESSION] = client
            yield

    app = web.Application(client_max_size=16 << 20)
    app.cleanup_ctx.append(session)  # type: ignore[arg-type]
    app.router.add_route("*", "/{path:.*}", proxy.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    proxy.port = runner.addresses[0][1]
    return runner

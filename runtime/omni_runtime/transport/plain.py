"""In the clear: for Unix sockets in a private folder, and for networks that are trusted."""

import asyncio
from collections.abc import Sequence

import grpc

from omni_runtime.transport.pipe import Greeted, Pipe, open_pipe, serve_pipes
from omni_runtime.transport.protocol import ChannelOptions


class PlainTransport:
    component = ""
    edition = 0
    expires_s: float | None = None
    interceptors: Sequence[grpc.aio.ServerInterceptor] = ()

    def channel(self, address: str, stage: str, options: ChannelOptions) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(address, options=options)

    def bind(self, server: grpc.aio.Server, address: str) -> None:
        server.add_insecure_port(address)

    def explain(self, error: grpc.aio.AioRpcError, stage: str) -> str | None:
        return None

    async def open_pipe(self, address: str, stage: str) -> Pipe:
        return await open_pipe(address)

    async def serve_pipes(self, address: str, greeted: Greeted) -> asyncio.Server:
        return await serve_pipes(address, greeted)


PLAIN = PlainTransport()

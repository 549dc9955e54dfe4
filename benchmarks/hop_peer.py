"""The peer of the hop benchmark: bare grpc.aio, one call for each request and hop; no contract, connectors or sessions.

`python -m benchmarks.hop_peer ADDRESS DELAY_S` is one of its three stages.
"""

import asyncio
import sys
from collections.abc import AsyncIterator

import grpc
import uvloop

SERVICE, METHOD = "peer.Stage", "Run"


def same(data: bytes) -> bytes:
    return data


async def serve(address: str, delay_s: float) -> None:
    async def run(request: bytes, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
        """Two events, as a stage has them: accepted, then the answer."""
        yield b""
        if delay_s:
            await asyncio.sleep(delay_s)
        yield request

    server = grpc.aio.server()
    handler = grpc.unary_stream_rpc_method_handler(run, same, same)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
    server.add_insecure_port(address)
    await server.start()
    await server.wait_for_termination()


class PeerChain:
    """A client that takes a request through all stages, one after the other."""

    def __init__(self, addresses: list[str]) -> None:
        self._channels = [grpc.aio.insecure_channel(address) for address in addresses]
        self._calls = [channel.unary_stream(f"/{SERVICE}/{METHOD}", same, same) for channel in self._channels]

    async def ready(self) -> None:
        await asyncio.gather(*(channel.channel_ready() for channel in self._channels))

    async def request(self, payload: bytes) -> None:
        for call in self._calls:
            async for event in call(payload):
                payload = event or payload

    async def close(self) -> None:
        await asyncio.gather(*(channel.close() for channel in self._channels))


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], float(sys.argv[2])))

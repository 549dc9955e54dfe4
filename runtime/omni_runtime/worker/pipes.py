"""Where a worker takes the pipes of its frontends. Each belongs to an AttachPipe call, which knows whose it is."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from omni_contract.wire.stage_pb2 import PipeOffer
from omni_runtime.transport.pipe import UNIX, Pipe
from omni_runtime.transport.protocol import Transport

OFFER_S = 5.0
"""How long a frontend may take to come with its pipe."""
TOKEN_BYTES = 32


class Offer:
    """`reply` is what the frontend is told."""

    def __init__(self, reply: PipeOffer) -> None:
        self.reply = reply
        self._pipe: asyncio.Future[Pipe] = asyncio.get_running_loop().create_future()

    def take(self, pipe: Pipe) -> None:
        if not self._pipe.done():
            self._pipe.set_result(pipe)

    async def taken(self) -> Pipe:
        """Raises TimeoutError if the frontend does not come."""
        async with asyncio.timeout(OFFER_S):
            return await self._pipe


class PipeServer:
    """Whoever comes without the token of an offer is cut off."""

    def __init__(self) -> None:
        self._offers: dict[bytes, Offer] = {}
        self._place = PipeOffer()

    @property
    def is_open(self) -> bool:
        return self._place.WhichOneof("place") is not None

    @asynccontextmanager
    async def serving(self, transport: Transport, address: str) -> AsyncIterator[None]:
        """Raises OSError if nobody can listen on the address."""
        server = await transport.serve_pipes(address, self._greeted)
        self._place = _place(address, server)
        try:
            yield
        finally:
            server.close()
            if self._place.path:
                await asyncio.to_thread(Path(self._place.path).unlink, missing_ok=True)

    @contextmanager
    def offer(self) -> Iterator[Offer]:
        """It stands while the block runs."""
        token = secrets.token_bytes(TOKEN_BYTES)
        reply = PipeOffer(token=token)
        reply.MergeFrom(self._place)
        offer = self._offers[token] = Offer(reply)
        try:
            yield offer
        finally:
            self._offers.pop(token, None)

    def _greeted(self, pipe: Pipe, token: bytes) -> None:
        offer = self._offers.pop(token, None)
        if offer is None:
            pipe.break_off("it showed no token")
        else:
            offer.take(pipe)


def _place(address: str, server: asyncio.Server) -> PipeOffer:
    host, _, port_or_path = address.rpartition(":")
    if host == UNIX:
        return PipeOffer(path=port_or_path)
    return PipeOffer(port=server.sockets[0].getsockname()[1])

"""What one attempt makes for others: whole, or bit by bit as the engine makes it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from omni_contract.api.v1alpha1 import StreamingSpec
from omni_contract.wire.chunk import Chunk
from omni_contract.wire.errors import ErrorCode, OmniError, StreamDroppedError
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Payload
from omni_runtime.engines.protocol import StageItem, StageNothing, StageOutput
from omni_runtime.together import together
from omni_runtime.worker.chunker import Chunker
from omni_runtime.worker.transfers import Made, OutgoingStream, Transfers

PARTS_AHEAD = 32
"""Parts of the final output that may be on their way to a client who does not read them."""

Announce: TypeAlias = Callable[[str, Made, bool], Awaitable[None]]
"""Tells the frontend of a payload for an edge, and whether more of the same output follows."""


class Outputs:
    """Takes the engine's outputs and items for the edges that were asked for."""

    def __init__(self, transfers: Transfers, announce: Announce, edges: tuple[str, ...]) -> None:
        self._transfers = transfers
        self._announce = announce
        self._missing = set(edges)
        self._writers: dict[str, _Writer] = {}
        self._parts: asyncio.Semaphore | None = None

    @property
    def are_unwanted(self) -> bool:
        """True once nobody reads any of it, so that the engine may stop."""
        return not self._missing and bool(self._writers) and not any(one.is_wanted for one in self._writers.values())

    def taken(self, parts: int) -> None:
        """The client has read so many parts of the final output."""
        if self._parts is not None:
            for _ in range(min(parts, PARTS_AHEAD)):
                self._parts.release()

    async def output(self, event: StageOutput) -> None:
        self._missing.remove(event.edge)
        self._transfers.stage.schemas.check_made(event.edge, event.payload)
        await self._announce(event.edge, await self._transfers.put(event.edge, event.payload), False)

    async def item(self, event: StageItem) -> None:
        if event.edge not in self._writers:
            self._begin(event.edge)
        self._transfers.stage.schemas.check_made(event.edge, event.payload)
        await self._writers[event.edge].item(event.payload, event.is_last)

    def nothing(self, event: StageNothing) -> None:
        self._begin(event.edge)

    def _begin(self, edge: str) -> None:
        self._missing.remove(edge)
        self._writers[edge] = self._writer(edge)

    async def end(self) -> None:
        """The engine has made everything. Edges end at the same time: the reader of one may wait for another."""
        if self._missing:
            raise OmniError(ErrorCode.STAGE_FAILED, f"the engine produced nothing for {sorted(self._missing)}")
        if self._writers:
            await together(writer.end() for writer in self._writers.values() if not writer.has_ended)

    def _writer(self, edge: str) -> "_Writer":
        if edge == FINAL:
            self._parts = asyncio.Semaphore(PARTS_AHEAD)
            return _Parts(self._transfers, self._announce, self._parts)
        end = self._transfers.stage.outputs.get(edge)
        if end is not None and end.streaming is not None:
            return _Stream(self._transfers, self._announce, edge, end.streaming)
        return _Whole(self._transfers, self._announce, edge)


class _Writer(Protocol):
    """The items of one edge on their way."""

    is_wanted: bool
    has_ended: bool

    async def item(self, item: Payload, is_last: bool) -> None: ...

    async def end(self) -> None: ...


class _Whole:
    """All items at the end."""

    is_wanted, has_ended = True, False

    def __init__(self, transfers: Transfers, announce: Announce, edge: str) -> None:
        self._transfers = transfers
        self._announce = announce
        self._edge = edge
        self._items: list[Payload] = []

    async def item(self, item: Payload, is_last: bool) -> None:
        self._items.append(item)

    async def end(self) -> None:
        chunk = Chunk(tuple(self._items), is_last=True)
        await self._announce(self._edge, await self._transfers.put(self._edge, chunk.payload()), False)


class _Parts:
    """The final output, item by item. The engine waits while its client is too far behind."""

    is_wanted = True

    def __init__(self, transfers: Transfers, announce: Announce, ahead: asyncio.Semaphore) -> None:
        self.has_ended = False
        self._transfers = transfers
        self._announce = announce
        self._ahead = ahead

    async def item(self, item: Payload, is_last: bool) -> None:
        await self._ahead.acquire()
        await self._send(Chunk((item,), is_last=is_last))

    async def end(self) -> None:
        await self._send(Chunk((), is_last=True))

    async def _send(self, chunk: Chunk) -> None:
        self.has_ended = chunk.is_last
        await self._announce(FINAL, await self._transfers.put(FINAL, chunk.payload()), not chunk.is_last)


class _Stream:
    """Chunks straight to the consumer. It is told of the stream with the first chunk, and starts then."""

    def __init__(self, transfers: Transfers, announce: Announce, edge: str, settings: StreamingSpec) -> None:
        self.is_wanted = True
        self.has_ended = False
        self._transfers = transfers
        self._announce = announce
        self._edge = edge
        self._chunker = Chunker(settings)
        self._stream: OutgoingStream | None = None

    async def item(self, item: Payload, is_last: bool) -> None:
        chunk = self._chunker.add(item, is_last)
        if chunk is not None:
            await self._send(chunk)

    async def end(self) -> None:
        await self._send(self._chunker.end())

    async def _send(self, chunk: Chunk) -> None:
        """A consumer that has ended wants no more: the stage goes on for the others."""
        self.has_ended = chunk.is_last
        if not self.is_wanted:
            return
        try:
            await self._append(chunk)
        except StreamDroppedError:
            self.is_wanted = False

    async def _append(self, chunk: Chunk) -> None:
        if self._stream is None:
            self._stream = await self._transfers.open_stream(self._edge)
            await self._announce(self._edge, self._stream.handle, False)
        await self._stream.append(chunk)

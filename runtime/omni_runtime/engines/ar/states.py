"""Hidden states on their way from vLLM's process to this one: rows of each request, in the order of its positions.

They come over a socket of their own, since vLLM's answers have no place for them. Each step is one message; its rows
lie in memory that both processes share, or in the message where there was no room.
"""

import asyncio
import json
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import zmq
import zmq.asyncio

from omni_contract.wire.payload import DTYPES, Array
from omni_runtime.engines.ar.inbox import Inbox
from omni_runtime.engines.ar.state_frames import IN_MESSAGE, lines_of_frames, pieces_of_frames, read_head
from omni_runtime.engines.ar.state_ring import RING_BYTES, RingReader, Way


class States:
    """Where vLLM's worker sends states to: a socket among vLLM's own."""

    def __init__(self, layers: tuple[int, ...], sockets: Path, ring_bytes: int = RING_BYTES) -> None:
        self.layers = layers
        self._ring = RingReader(ring_bytes)
        self.way = Way(f"ipc://{sockets}/states", self._ring.path)
        self._context = zmq.asyncio.Context()
        self._inboxes: dict[int, Inbox] = {}
        self._numbers = count()
        self._receiving: asyncio.Task[None] | None = None

    def open(self) -> None:
        socket = self._context.socket(zmq.PULL)
        socket.bind(self.way.socket)
        self._receiving = asyncio.create_task(self._receive(socket))

    async def close(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.wait([self._receiving])
        self._context.destroy(linger=0)
        self._ring.close()

    @contextmanager
    def inbox(self) -> Iterator[Inbox]:
        """For one request, as long as the block runs; what comes later is dropped."""
        inbox = Inbox(self.layers, next(self._numbers))
        self._inboxes[inbox.key] = inbox
        try:
            yield inbox
        finally:
            del self._inboxes[inbox.key]

    async def _receive(self, socket: zmq.asyncio.Socket) -> None:
        while True:
            self._deliver([frame.buffer for frame in await socket.recv_multipart(copy=False)])

    def _deliver(self, message: Sequence[memoryview]) -> None:
        """A step's rows, those of one request after those of another, layer by layer."""
        (begin, lines, head), frames = read_head(message[0]), message[1:]
        header = json.loads(head)
        for key, positions in header["located"]:
            if (inbox := self._inboxes.get(key)) is not None:
                inbox.positions = _located(positions)
        dtype, width = header["dtype"], header["width"]
        sizes_bytes = [rows * width * DTYPES[dtype] for _, _, rows in lines]
        groups = lines_of_frames(sizes_bytes)
        if begin != IN_MESSAGE:
            frames = self._copied(begin, sizes_bytes)
        for place, group in enumerate(groups):
            contents, start = frames[place :: len(groups)], 0
            for (key, first, rows), size_bytes in zip(lines[group], sizes_bytes[group], strict=True):
                end = start + size_bytes
                if (inbox := self._inboxes.get(key)) is not None:
                    inbox.add(first, rows, [content[start:end] for content in contents], (dtype, width))
                start = end

    def _copied(self, begin: int, sizes_bytes: Sequence[int]) -> list[memoryview]:
        """What lies in the ring from there on, as frames; it is free then."""
        size_bytes, pieces, frames = sum(sizes_bytes), pieces_of_frames(sizes_bytes), []
        for _ in self.layers:
            layer = self._ring.step(begin, size_bytes)
            frames += [memoryview(bytes(layer[piece])) for piece in pieces]
            begin += size_bytes
        self._ring.free(begin)
        return frames


def _located(positions: Sequence[Sequence[int]]) -> Array:
    flat = array("i", [number for position in positions for number in position])
    return Array("int32", (len(positions), 3), memoryview(flat).cast("B"))

"""Hidden states on their way from vLLM's process to this one: rows of each request, in the order of its positions.

They come over a socket of their own, since vLLM's answers have no place for them; each step is one message.
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
from omni_runtime.engines.ar.state_frames import lines_of_frames


class States:
    """Where vLLM's worker sends states to: a socket among vLLM's own."""

    def __init__(self, layers: tuple[int, ...], sockets: Path) -> None:
        self.layers = layers
        self.address = f"ipc://{sockets}/states"
        self._context = zmq.asyncio.Context()
        self._inboxes: dict[int, Inbox] = {}
        self._numbers = count()
        self._receiving: asyncio.Task[None] | None = None

    def open(self) -> None:
        socket = self._context.socket(zmq.PULL)
        socket.bind(self.address)
        self._receiving = asyncio.create_task(self._receive(socket))

    async def close(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.wait([self._receiving])
        self._context.destroy(linger=0)

    @contextmanager
    def inbox(self) -> Iterator[Inbox]:
        """For one request, as long as the block runs; what comes later is dropped."""
        inbox = Inbox(next(self._numbers))
        self._inboxes[inbox.key] = inbox
        try:
            yield inbox
        finally:
            del self._inboxes[inbox.key]

    async def _receive(self, socket: zmq.asyncio.Socket) -> None:
        while True:
            self._deliver([frame.buffer for frame in await socket.recv_multipart(copy=False)])

    def _deliver(self, frames: Sequence[memoryview]) -> None:
        """A step's rows, those of one request after those of another, layer by layer."""
        header, table, rows = json.loads(bytes(frames[0])), frames[1].cast("q").tolist(), frames[2:]
        for key, positions in header["located"]:
            if (inbox := self._inboxes.get(key)) is not None:
                inbox.positions = _located(positions)
        dtype, width = header["dtype"], header["width"]
        row_bytes = width * DTYPES[dtype]
        keys, firsts, sizes_bytes = table[::3], table[1::3], [count * row_bytes for count in table[2::3]]
        of_frames = lines_of_frames(sizes_bytes)
        for place, lines in enumerate(of_frames):
            layers, start = dict(zip(self.layers, rows[place :: len(of_frames)], strict=True)), 0
            for key, first, size_bytes in zip(keys[lines], firsts[lines], sizes_bytes[lines], strict=True):
                end = start + size_bytes
                if (inbox := self._inboxes.get(key)) is not None:
                    inbox.add(first, {layer: data[start:end] for layer, data in layers.items()}, dtype, width)
                start = end


def _located(positions: Sequence[Sequence[int]]) -> Array:
    flat = array("i", [number for position in positions for number in position])
    return Array("int32", (len(positions), 3), memoryview(flat).cast("B"))

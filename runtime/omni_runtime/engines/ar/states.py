"""Hidden states on their way from vLLM's process to this one: rows of each request, in the order of its positions.

They come over a socket of their own, since vLLM's answers have no place for them; each step is one message.
"""

import asyncio
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import zmq
import zmq.asyncio

from omni_contract.wire.payload import DTYPES, Array


@dataclass
class Inbox:
    """The rows of one request that have come and are not taken yet. `next_position` is the first that has not come."""

    next_position: int = 0
    parts: dict[int, list[bytes]] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    dtype: str = ""
    width: int = 0
    taken: int = 0

    async def until(self, position: int) -> Mapping[int, Array]:
        """By layer, the rows of all positions before this one that have not been taken before."""
        while self.next_position < position:
            self.changed.clear()
            await self.changed.wait()
        return self._take()

    def add(self, first: int, rows: Mapping[int, memoryview], dtype: str, width: int) -> None:
        """Rows that have come before come again if vLLM had to drop the request's cache for a while."""
        self.dtype, self.width = dtype, width
        row_bytes = width * DTYPES[dtype]
        known = self.next_position - first
        for layer, data in rows.items():
            self.parts.setdefault(layer, []).append(bytes(data[max(0, known) * row_bytes :]))
        self.next_position = max(self.next_position, first + len(next(iter(rows.values()))) // row_bytes)
        self.changed.set()

    def _take(self) -> Mapping[int, Array]:
        count, self.taken = self.next_position - self.taken, self.next_position
        parts, self.parts = self.parts, {}
        return {
            layer: Array(self.dtype, (count, self.width), memoryview(b"".join(of_layer)))
            for layer, of_layer in parts.items()
        }


class States:
    """Where vLLM's worker sends states to: `address`, in a folder that nobody else may enter. Closed once."""

    def __init__(self, layers: tuple[int, ...]) -> None:
        self.layers = layers
        self._folder = Path(tempfile.mkdtemp(prefix="omni-states-"))
        self.address = f"ipc://{self._folder}/socket"
        self._context = zmq.asyncio.Context()
        self._inboxes: dict[str, Inbox] = {}

    async def receive(self) -> None:
        """Runs until it is cancelled."""
        with self._context.socket(zmq.PULL) as socket:
            socket.bind(self.address)
            while True:
                self._deliver(await socket.recv_multipart(copy=False))

    @contextmanager
    def inbox(self, key: str) -> Iterator[Inbox]:
        """For one request, as long as the block runs; what comes later is dropped."""
        self._inboxes[key] = inbox = Inbox()
        try:
            yield inbox
        finally:
            del self._inboxes[key]

    def close(self) -> None:
        self._context.destroy(linger=0)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _deliver(self, frames: "list[zmq.Frame]") -> None:
        header = json.loads(frames[0].bytes)
        layers = dict(zip(self.layers, (memoryview(frame.buffer) for frame in frames[1:]), strict=True))
        row_bytes = prod((header["width"], DTYPES[header["dtype"]]))
        start = 0
        for key, first, count in header["requests"]:
            end = start + count * row_bytes
            if (inbox := self._inboxes.get(key)) is not None:
                rows = {layer: data[start:end] for layer, data in layers.items()}
                inbox.add(first, rows, header["dtype"], header["width"])
            start = end

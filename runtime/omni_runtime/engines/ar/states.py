"""Hidden states on their way from vLLM's process to this one: rows of each request, in the order of its positions.

They come over a socket of their own, since vLLM's answers have no place for them; each step is one message.
"""

import asyncio
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypeAlias

import zmq
import zmq.asyncio

from omni_contract.wire.payload import DTYPES, Array

Layers: TypeAlias = Mapping[int, Array]
"""Rows by layer, of the same positions."""


class Inbox:
    """The rows of one request that have come and are not taken yet."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._arrived = 0
        self._taken = 0
        self._parts: dict[int, list[memoryview]] = {}
        self._kind = ("", 0)
        self._changed = asyncio.Event()

    async def until(self, position: int) -> Layers:
        """The rows of all positions before this one that have not been taken before; later ones wait for their turn."""
        while self._arrived < position:
            self._changed.clear()
            await self._changed.wait()
        (dtype, width), count = self._kind, position - self._taken
        self._taken = position
        return {
            layer: Array(dtype, (count, width), self._cut(layer, count * width * DTYPES[dtype]))
            for layer in list(self._parts)
        }

    def _cut(self, layer: int, size_bytes: int) -> memoryview:
        whole = memoryview(b"".join(self._parts[layer]))
        self._parts[layer] = [whole[size_bytes:]]
        return whole[:size_bytes]

    def add(self, first: int, rows: Mapping[int, memoryview], dtype: str, width: int) -> None:
        """Positions that have come before come again if vLLM had to drop the request's cache for a while."""
        row_bytes = width * DTYPES[dtype]
        known = max(0, self._arrived - first)
        count = len(next(iter(rows.values()))) // row_bytes
        if count <= known:
            return
        self._kind = (dtype, width)
        for layer, data in rows.items():
            self._parts.setdefault(layer, []).append(data[known * row_bytes :])
        self._arrived = first + count
        self._changed.set()


class States:
    """Where vLLM's worker sends states to: a socket in a folder that nobody else may enter."""

    def __init__(self, layers: tuple[int, ...]) -> None:
        self.layers = layers
        self._folder = Path(tempfile.mkdtemp(prefix="omni-states-"))
        self.address = f"ipc://{self._folder}/socket"
        self._context = zmq.asyncio.Context()
        self._inboxes: dict[str, Inbox] = {}
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
        shutil.rmtree(self._folder)

    @contextmanager
    def inbox(self) -> Iterator[Inbox]:
        """For one request, as long as the block runs; what comes later is dropped."""
        inbox = Inbox(f"{next(self._numbers)}")
        self._inboxes[inbox.key] = inbox
        try:
            yield inbox
        finally:
            del self._inboxes[inbox.key]

    async def _receive(self, socket: zmq.asyncio.Socket) -> None:
        while True:
            self._deliver([frame.buffer for frame in await socket.recv_multipart(copy=False)])

    def _deliver(self, frames: Sequence[memoryview]) -> None:
        """A step's rows, those of one request after those of another, in a frame for each layer."""
        header = json.loads(bytes(frames[0]))
        row_bytes = header["width"] * DTYPES[header["dtype"]]
        start = 0
        for key, first, rows in header["requests"]:
            end = start + rows * row_bytes
            if (inbox := self._inboxes.get(key)) is not None:
                of_layers = {layer: data[start:end] for layer, data in zip(self.layers, frames[1:], strict=True)}
                inbox.add(first, of_layers, header["dtype"], header["width"])
            start = end

"""Hidden states of one request, from when they come until they leave with the tokens that they belong to."""

import asyncio
from collections.abc import Mapping
from typing import TypeAlias

from omni_contract.wire.payload import DTYPES, Array
from omni_runtime.engines.ar.state_frames import OWN_FRAME_BYTES

Layers: TypeAlias = Mapping[int, Array]
"""Rows by layer, of the same positions."""


class Inbox:
    """The rows of one request that have come and are not taken yet."""

    def __init__(self, key: int = 0) -> None:
        self.key = key
        self.positions: Array | None = None
        """Of a prompt with media, in time, height and width; of shape (tokens, 3). They come ahead of its rows."""
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
        """A copy, unless these are rows with a frame of their own: others would be held with them."""
        parts = self._parts[layer]
        if len(parts) == 1 and len(parts[0]) == size_bytes >= OWN_FRAME_BYTES:
            self._parts[layer] = []
            return parts[0]
        whole = memoryview(b"".join(parts))
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

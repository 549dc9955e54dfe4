"""Hidden states of one request, from when they come until they leave with the tokens that they belong to."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from omni_contract.wire.payload import DTYPES, Array
from omni_runtime.engines.ar.state_frames import OWN_FRAME_BYTES

Layers: TypeAlias = Mapping[int, Array]
"""Rows by layer, of the same positions."""
Kind: TypeAlias = tuple[str, int]
"""The dtype of rows, and their width."""
MOST_PARTS = 16
"""A part of a few rows holds those of other requests, too. Of a request that is slow, they are copied."""


class Inbox:
    """The rows of one request that have come and are not taken yet."""

    def __init__(self, layers: Sequence[int], key: int = 0) -> None:
        self.key = key
        self.positions: Array | None = None
        """Of a prompt with media, in time, height and width; of shape (tokens, 3). They come ahead of its rows."""
        self._arrived = 0
        self._taken = 0
        self._parts: dict[int, deque[memoryview]] = {layer: deque() for layer in layers}
        self._waiting = 0
        """Parts that have come since some were taken or copied."""
        self._kind = ("", 0)
        self._changed = asyncio.Event()

    @property
    def layers(self) -> Sequence[int]:
        return tuple(self._parts)

    async def until(self, position: int) -> Layers:
        """The rows of all positions before this one that have not been taken before; later ones wait for their turn.

        None of any layer if nothing has come yet.
        """
        while self._arrived < position:
            self._changed.clear()
            await self._changed.wait()
        if not self._arrived:
            return {}
        (dtype, width), count = self._kind, position - self._taken
        self._taken, self._waiting = position, 0
        size_bytes = count * width * DTYPES[dtype]
        return {layer: Array(dtype, (count, width), _cut(parts, size_bytes)) for layer, parts in self._parts.items()}

    def add(self, first: int, count: int, rows: Sequence[memoryview], kind: Kind) -> None:
        """So many rows of each layer. Positions come again if vLLM had to drop the request's cache for a while."""
        known = self._arrived - first
        if known >= count:
            return
        if known > 0:
            rows = [data[known * len(data) // count :] for data in rows]
        self._kind = kind
        for parts, data in zip(self._parts.values(), rows, strict=True):
            parts.append(data)
        self._waiting += 1
        if self._waiting == MOST_PARTS:
            self._waiting = 0
            for parts in self._parts.values():
                last = [parts.pop() for _ in range(MOST_PARTS)]
                parts.append(memoryview(b"".join(reversed(last))))
        self._arrived = first + count
        self._changed.set()


def _set(parts: deque[memoryview], rest: memoryview) -> None:
    parts.clear()
    if rest:
        parts.append(rest)


def _cut(parts: deque[memoryview], size_bytes: int) -> memoryview:
    """A copy, unless these are rows with a frame of their own: others would be held with them."""
    if parts and len(parts[0]) == size_bytes >= OWN_FRAME_BYTES:
        return parts.popleft()
    whole = memoryview(b"".join(parts))
    _set(parts, whole[size_bytes:])
    return whole[:size_bytes]

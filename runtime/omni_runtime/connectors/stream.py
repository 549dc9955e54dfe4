"""Chunks on their way from one producer to one consumer; so many bytes of them wait that producers keep their own pace.

A thinker's answer of ordinary length waits whole for a talker that has no room yet, while its text goes on.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from omni_contract.wire.codec import EncodedPayload
from omni_runtime.connectors.budget import Budget, PayloadGoneError

BUFFER_CHUNKS = 16
"""That may wait however little of the store is left."""
BUFFER_BYTES = 64 * 2**20
CHUNK_COST_BYTES = 4096
"""What each chunk counts for beside its bytes, so that their number is bounded, too."""


class ChunkStream:
    """One stream on its owner's side. A chunk is freed as it is taken, so a stream can be read once."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._chunks: deque[EncodedPayload] = deque()
        self._size_bytes = 0
        self._is_begun = False
        self._has_ended = False
        self._is_dropped = False
        self._tell_reader: Callable[[], None] = _tell_nobody
        self._has_changed = asyncio.Event()

    async def append(self, chunk: EncodedPayload) -> None:
        """Waits for room; raises PayloadGoneError once the stream was dropped, by release or at its deadline."""
        if len(self._chunks) >= BUFFER_CHUNKS:
            # A producer that never waits would keep its consumer from ever reading.
            await asyncio.sleep(0)
        while not self._is_dropped and not self._has_room(chunk.size_bytes):
            self._has_changed.clear()
            await self._has_changed.wait()
        self._check_held()
        self._budget.take(chunk.size_bytes)
        self._chunks.append(chunk)
        self._size_bytes += chunk.size_bytes
        self._tell_reader()

    def end(self) -> None:
        self._has_ended = True
        self._tell_reader()

    @property
    def has_chunks(self) -> bool:
        return bool(self._chunks)

    @property
    def is_complete(self) -> bool:
        """Everything was taken, and nothing follows."""
        return self._has_ended and not self._chunks

    def begin(self, changed: Callable[[], None]) -> None:
        """From now on `changed` is called when there is something to take, an end or a loss; at once if there is."""
        self._check_held()
        if self._is_begun:
            raise PayloadGoneError("its first chunk was delivered and freed")
        self._tell_reader = changed
        if self._chunks or self._has_ended:
            changed()

    def take(self) -> EncodedPayload | None:
        """The next chunk, None while there is none; raises PayloadGoneError once the stream was dropped."""
        self._check_held()
        if not self._chunks:
            return None
        self._is_begun = True
        chunk = self._chunks.popleft()
        self._size_bytes -= chunk.size_bytes
        self._budget.give(chunk.size_bytes)
        self._has_changed.set()
        return chunk

    def drop(self) -> None:
        self._is_dropped = True
        self._budget.give(self._size_bytes)
        self._chunks.clear()
        self._size_bytes = 0
        self._has_changed.set()
        self._tell_reader()

    def _has_room(self, size_bytes: int) -> bool:
        if not self._chunks:
            return True
        is_near = len(self._chunks) < BUFFER_CHUNKS
        costs = self._size_bytes + size_bytes + (len(self._chunks) + 1) * CHUNK_COST_BYTES
        return costs <= BUFFER_BYTES and (is_near or self._budget.spares(size_bytes))

    def _check_held(self) -> None:
        if self._is_dropped:
            raise PayloadGoneError("the stream was released or its deadline has passed")


def _tell_nobody() -> None:
    """Nobody reads yet."""

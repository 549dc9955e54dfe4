"""Chunks on their way from one producer to one consumer; so many bytes of them wait that producers keep their own pace.

A thinker's answer of ordinary length waits whole for a talker that has no room yet, while its text goes on.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from omni_contract.wire.codec import EncodedPayload
from omni_runtime.connectors.budget import Budget, PayloadGoneError

BUFFER_CHUNKS = 16
"""That may wait however little of the store is left, and that a consumer asks for at a time."""
BUFFER_BYTES = 64 * 2**20
CHUNK_COST_BYTES = 4096
"""What each chunk counts for beside its bytes, so that their number is bounded, too."""
BATCH_BYTES = 2**20
"""Chunks that wait travel together up to so much; a larger one goes alone."""


class Batch(NamedTuple):
    """Chunks that waited together, in order; after the last batch nothing follows."""

    chunks: tuple[EncodedPayload, ...]
    is_last: bool

    @property
    def size_bytes(self) -> int:
        return sum(chunk.size_bytes for chunk in self.chunks)


class ChunkStream:
    """One stream on its owner's side. A chunk is freed when the consumer asks for the next one."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._chunks: deque[EncodedPayload] = deque()
        self._first = 0
        self._size_bytes = 0
        self._ended = False
        self._dropped = False
        self._changed = asyncio.Event()

    async def append(self, chunk: EncodedPayload) -> None:
        """Waits for room; raises PayloadGoneError once the stream was dropped, by release or at its deadline."""
        if len(self._chunks) >= BUFFER_CHUNKS:
            # A producer that never waits would keep its consumer from ever reading.
            await asyncio.sleep(0)
        await self._until(lambda: self._has_room(chunk.size_bytes))
        self._budget.take(chunk.size_bytes)
        self._chunks.append(chunk)
        self._size_bytes += chunk.size_bytes
        self._notify()

    def end(self) -> None:
        self._ended = True
        self._notify()

    async def read(self, position: int, most_chunks: int = 0) -> AsyncIterator[Batch]:
        """What waits from chunk number `position` on, again and again, until the end or so many chunks.

        0 stands for one chunk at a time, however many there are. A batch is freed when the next one is asked for.
        """
        stop = position + most_chunks
        while not most_chunks or position < stop:
            batch = await self._batch(position, stop - position if most_chunks else 1)
            yield batch
            position += len(batch.chunks)
            self._free_before(position)
            if batch.is_last:
                return

    def drop(self) -> None:
        self._dropped = True
        self._budget.give(self._size_bytes)
        self._chunks.clear()
        self._size_bytes = 0
        self._notify()

    def _has_room(self, size_bytes: int) -> bool:
        if not self._chunks:
            return True
        is_near = len(self._chunks) < BUFFER_CHUNKS
        costs = self._size_bytes + size_bytes + (len(self._chunks) + 1) * CHUNK_COST_BYTES
        return costs <= BUFFER_BYTES and (is_near or self._budget.spares(size_bytes))

    async def _batch(self, position: int, most_chunks: int) -> Batch:
        """What waits now, or will as the next; without chunks if the stream has ended."""
        await self._until(lambda: self._ended or position < self._first + len(self._chunks))
        if position < self._first:
            raise PayloadGoneError(f"chunk {position} was delivered and freed")
        waiting = islice(self._chunks, position - self._first, position - self._first + most_chunks)
        chunks = tuple(_within(waiting, BATCH_BYTES))
        return Batch(chunks, self._ended and position + len(chunks) == self._first + len(self._chunks))

    def _free_before(self, position: int) -> None:
        while self._chunks and self._first < position:
            freed = self._chunks.popleft().size_bytes
            self._first += 1
            self._size_bytes -= freed
            self._budget.give(freed)
        self._notify()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not self._dropped and not condition():
            await self._changed.wait()
        if self._dropped:
            raise PayloadGoneError("the stream was released or its deadline has passed")

    def _notify(self) -> None:
        """Wakes everybody who waits now; later waiters wait for the next change."""
        self._changed.set()
        self._changed = asyncio.Event()


def _within(chunks: Iterable[EncodedPayload], limit_bytes: int) -> Iterator[EncodedPayload]:
    """The first of them that together stay within the limit, but one at least."""
    size_bytes = 0
    for number, chunk in enumerate(chunks):
        size_bytes += chunk.size_bytes
        if number and size_bytes > limit_bytes:
            return
        yield chunk

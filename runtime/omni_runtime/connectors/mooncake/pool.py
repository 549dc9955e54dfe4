"""Memory that is registered with the library once and cut into blocks that are used again and again."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

from omni_contract.wire.codec import EncodedPayload
from omni_runtime.connectors.budget import PayloadGoneError, StoreFullError
from omni_runtime.connectors.mooncake.memory import COPY_BYTES, PoolMemory
from omni_runtime.connectors.shm.allocator import Allocator


class Block:
    """A part of the pool that belongs to one payload."""

    def __init__(self, pool: "Pool", offset: int, size_bytes: int) -> None:
        self.offset = offset
        self.size_bytes = size_bytes
        self.address = pool.address + offset
        self._pool = pool
        self._is_ours = True

    def write(self, position: int, data: memoryview) -> None:
        self._pool.memory.write(self.offset + position, data)

    def read(self, position: int, size_bytes: int) -> memoryview:
        """Not to be used beyond `free`."""
        return self._pool.memory.read(self.offset + position, size_bytes)

    def free(self) -> None:
        """Harmless when the block has been given back before."""
        if self._is_ours:
            self._is_ours = False
            self._pool.take_back(self.offset)

    async def lend(self) -> memoryview:
        """The bytes. The block is free once nobody looks at them, or when they are copied if they must be."""
        return await self._pool.lend(self)

    async def fill(self, payload: EncodedPayload, start: int) -> None:
        for piece in payload.slices(COPY_BYTES):
            self.write(start, piece)
            start += piece.nbytes
            if piece.nbytes == COPY_BYTES:
                await asyncio.sleep(0)

    def slices(self, start: int, slice_bytes: int) -> Iterator[memoryview]:
        """The memory from `start` on, piece by piece; PayloadGoneError if the block is given back meanwhile."""
        for position in range(start, self.size_bytes, slice_bytes):
            if not self._is_ours:
                raise PayloadGoneError("the payload was released during its transfer")
            yield self.read(position, min(slice_bytes, self.size_bytes - position))


class Pool:
    """Made and used on one event loop; only views may go out of use on other threads."""

    def __init__(self, memory: PoolMemory) -> None:
        self.memory = memory
        self.size_bytes = memory.size_bytes
        self.address = memory.address
        self._blocks = Allocator(memory.size_bytes)
        self._unviewed: deque[Block] = deque()
        self._queue = asyncio.Lock()
        self._freed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @property
    def used_bytes(self) -> int:
        self._collect()
        return self._blocks.used_bytes

    async def take(self, size_bytes: int, wait_s: float) -> Block:
        """First come, first served; raises StoreFullError if no block is free within the time."""
        if size_bytes > self._blocks.size_bytes:
            raise StoreFullError(f"{size_bytes:,} bytes are more than the {self.size_bytes:,} that there are in all")
        try:
            async with asyncio.timeout(wait_s), self._queue:
                while (block := self._allocate(size_bytes)) is None:
                    self._freed.clear()
                    await self._freed.wait()
                return block
        except TimeoutError as error:
            raise StoreFullError(
                f"no room for {size_bytes:,} bytes: {self.used_bytes:,} of {self.size_bytes:,} bytes are in use"
            ) from error

    async def lend(self, block: Block) -> memoryview:
        return await self.memory.lend(block.offset, block.size_bytes, lambda: self._no_longer_viewed(block))

    def take_back(self, offset: int) -> None:
        self._blocks.free(offset)
        self._freed.set()

    def _allocate(self, size_bytes: int) -> Block | None:
        self._collect()
        offset = self._blocks.allocate(size_bytes)
        return None if offset is None else Block(self, offset, size_bytes)

    def _no_longer_viewed(self, block: Block) -> None:
        """Called wherever the last view was collected, even inside of our own code."""
        self._unviewed.append(block)
        # The loop is closed when views outlive their process's work.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        while self._unviewed:
            self._unviewed.popleft().free()

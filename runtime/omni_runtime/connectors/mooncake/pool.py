"""Memory that is registered with the library once and cut into blocks that are used again and again."""

import asyncio
import ctypes
import mmap
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

from omni_contract.wire.codec import EncodedPayload
from omni_runtime.connectors.budget import PayloadGoneError, StoreFullError
from omni_runtime.connectors.shm.allocator import Allocator

COPY_BYTES = 4 * 2**20
"""Between two such pieces of a large payload the event loop has its turn."""


class Block:
    """A part of the pool that belongs to one payload."""

    def __init__(self, pool: "Pool", offset: int, size_bytes: int) -> None:
        self.offset = offset
        self.size_bytes = size_bytes
        self.address = pool.address + offset
        self._pool = pool
        self._is_ours = True

    @property
    def bytes(self) -> memoryview:
        """The memory; not to be used beyond `free`."""
        return self._pool.memory[self.offset : self.offset + self.size_bytes]

    def free(self) -> None:
        """Harmless when the block has been given back before."""
        if self._is_ours:
            self._is_ours = False
            self._pool.take_back(self.offset)

    def lend(self) -> memoryview:
        """The memory, as a view that frees the block once neither it nor a view of it is left."""
        return self._pool.view(self)

    async def fill(self, payload: EncodedPayload, start: int) -> None:
        memory = self.bytes
        for piece in payload.slices(COPY_BYTES):
            memory[start : start + piece.nbytes] = piece
            start += piece.nbytes
            if piece.nbytes == COPY_BYTES:
                await asyncio.sleep(0)

    def slices(self, start: int, slice_bytes: int) -> Iterator[memoryview]:
        """The memory from `start` on, piece by piece; PayloadGoneError if the block is given back meanwhile."""
        for position in range(start, self.size_bytes, slice_bytes):
            if not self._is_ours:
                raise PayloadGoneError("the payload was released during its transfer")
            yield self.bytes[position : position + slice_bytes]


class Pool:
    """Made and used on one event loop; only views may go out of use on other threads."""

    def __init__(self, size_bytes: int) -> None:
        self._mapping = mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.size_bytes = size_bytes
        self.memory = memoryview(self._mapping)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))
        self._blocks = Allocator(size_bytes)
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

    def view(self, block: Block) -> memoryview:
        region = (ctypes.c_ubyte * block.size_bytes).from_buffer(self._mapping, block.offset)
        weakref.finalize(region, self._no_longer_viewed, block).atexit = False
        return memoryview(region).cast("B")

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

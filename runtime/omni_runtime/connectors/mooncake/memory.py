"""The memory that a pool is made of: the host's, or another that the host sees only through copies."""

import asyncio
import ctypes
import mmap
import weakref
from collections.abc import Callable
from typing import Protocol

from omni_contract.wire.codec import allocate

COPY_BYTES = 4 * 2**20
"""Between two such pieces of a large payload the event loop has its turn."""


class PoolMemory(Protocol):
    address: int
    size_bytes: int

    def write(self, position: int, data: memoryview) -> None: ...

    def read(self, position: int, size_bytes: int) -> memoryview:
        """The bytes where they are; a copy if the host cannot see them there."""
        ...

    async def lend(self, position: int, size_bytes: int, when_unused: Callable[[], None]) -> memoryview:
        """The bytes for others. `when_unused` is called, on any thread, once the memory is not needed for them."""
        ...

    def close(self) -> None: ...


class HostMemory:
    def __init__(self, size_bytes: int) -> None:
        self._mapping = mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._bytes = memoryview(self._mapping)
        self.size_bytes = size_bytes
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))

    def write(self, position: int, data: memoryview) -> None:
        self._bytes[position : position + data.nbytes] = data

    def read(self, position: int, size_bytes: int) -> memoryview:
        return self._bytes[position : position + size_bytes]

    async def lend(self, position: int, size_bytes: int, when_unused: Callable[[], None]) -> memoryview:
        region = (ctypes.c_ubyte * size_bytes).from_buffer(self._mapping, position)
        weakref.finalize(region, when_unused).atexit = False
        return memoryview(region).cast("B")

    def close(self) -> None:
        """It goes with its last view."""


async def copied(memory: PoolMemory, position: int, size_bytes: int) -> memoryview:
    """The bytes in the host's memory, where a payload's arrays are aligned."""
    copy = allocate(size_bytes)
    for start in range(0, size_bytes, COPY_BYTES):
        length = min(COPY_BYTES, size_bytes - start)
        copy[start : start + length] = memory.read(position + start, length)
        await asyncio.sleep(0)
    return copy

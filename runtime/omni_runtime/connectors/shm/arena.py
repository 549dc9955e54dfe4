"""The owner's side of shared memory: one file for all payloads of a connector, cut into blocks that are used again.

A block is a header (key and length of its payload), then the payload. It is free again once no view of it is left in
this process and no other process reads it. Everything but the end of views runs on one event loop.
"""

import asyncio
import logging
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from omni_contract.wire.codec import EncodedPayload
from omni_runtime.connectors.protocol import ArenaCensus
from omni_runtime.connectors.shm import folder as files
from omni_runtime.connectors.shm.allocator import ALIGNMENT, Allocator
from omni_runtime.connectors.shm.lease import give_up_ownership, has_reader
from omni_runtime.connectors.shm.loop import HomeLoop
from omni_runtime.connectors.shm.mapping import Mapping

logger = logging.getLogger(__name__)

HEADER = struct.Struct("24sQ")
"""Key and length; a key of zeros means that the payload is gone."""
HEADER_BYTES = ALIGNMENT
COPY_BYTES = 4 * 2**20
"""Between two such pieces of a large payload, the event loop has its turn."""
STEP_BYTES = 16 * 2**20
"""An arena that grows takes so much at a time."""
READERS_CHECK_S = 0.05
"""How soon a block is found unused whose reader has outlived the payload."""


class ArenaFullError(Exception):
    """No room came up in time."""


class Block(NamedTuple):
    """Room for one payload; it is free again once `memory` and every view of it are gone."""

    offset: int
    memory: memoryview


class Arena:
    """Takes its memory when it is made, or as it grows. Its file goes with `close`; else who starts next sweeps it."""

    def __init__(self, folder: Path, size_bytes: int, grows: bool = False) -> None:
        """Raises ArenaError if the memory is not there. Its pages are prepared in the background."""
        self._reserved_bytes = min(STEP_BYTES, size_bytes) if grows else size_bytes
        self.name, self._file = files.create(folder, size_bytes, self._reserved_bytes)
        self._path = folder / self.name
        try:
            self._mapping = Mapping(self._file, size_bytes, is_writable=True)
        except OSError as error:
            self._path.unlink()
            os.close(self._file)
            raise files.ArenaError(f"{folder} gives no {size_bytes:,} bytes of memory ({error.strerror})") from error
        self._blocks = Allocator(size_bytes)
        self._lingering: set[int] = set()
        self._line = asyncio.Lock()
        self._freed = asyncio.Event()
        self._home = HomeLoop()
        self._check: asyncio.TimerHandle | None = None
        self._populating = asyncio.get_running_loop().run_in_executor(
            None, self._mapping.populate, self._reserved_bytes
        )
        self._growing: asyncio.Task[bool] | None = None
        self._is_closed = False

    @property
    def capacity_bytes(self) -> int:
        """The longest payload that fits while nothing else is held."""
        return self._blocks.size_bytes - HEADER_BYTES

    def census(self) -> ArenaCensus:
        blocks = self._blocks
        return ArenaCensus(blocks.size_bytes, blocks.used_bytes, blocks.blocks, len(self._lingering))

    def take(self, size_bytes: int) -> Block | None:
        """A block at once, if there is room that has its memory and nobody waits for it."""
        if self._line.locked() or (offset := self._blocks.allocate(HEADER_BYTES + size_bytes)) is None:
            return None
        if offset + HEADER_BYTES + size_bytes > self._reserved_bytes:
            self._blocks.free(offset)
            return None
        return self._block(offset, size_bytes)

    async def try_reserve(self, size_bytes: int) -> Block | None:
        """A block if there is room and nobody waits for it: at once, but for memory that must be taken first."""
        block = None if self._line.locked() else self._reserve(size_bytes)
        return block if block is not None and await self._is_backed(block) else None

    async def reserve(self, size_bytes: int, wait_s: float) -> Block:
        """A block, first come, first served; raises ArenaFullError if there is no room within the time."""
        if (block := await self.try_reserve(size_bytes)) is not None:
            return block
        if size_bytes > self.capacity_bytes:
            raise ArenaFullError(f"a payload of {size_bytes:,} bytes is larger than the arena")
        try:
            async with asyncio.timeout(wait_s), self._line:
                while (block := self._reserve(size_bytes)) is None:
                    self._freed.clear()
                    await self._freed.wait()
                if await self._is_backed(block):
                    return block
        except TimeoutError:
            used_bytes, all_bytes = self._blocks.used_bytes, self._blocks.size_bytes
            raise ArenaFullError(
                f"no room for {size_bytes:,} bytes within {wait_s:.1f} s: "
                f"{used_bytes:,} of {all_bytes:,} bytes are in use"
            ) from None
        raise ArenaFullError(f"{self._path.parent} has no memory beyond {self._reserved_bytes:,} bytes")

    async def fill(self, block: Block, payload: EncodedPayload) -> None:
        """Copies a payload in."""
        memory, position = block.memory, 0
        for piece in payload.parts if payload.size_bytes < COPY_BYTES else payload.slices(COPY_BYTES):
            end = position + piece.nbytes
            memory[position:end] = piece
            if piece.nbytes == COPY_BYTES:
                await asyncio.sleep(0)
            position = end

    def sign(self, block: Block, key: str) -> None:
        """From here on readers find the payload under its key, until it is forgotten."""
        HEADER.pack_into(self._mapping.bytes, block.offset, key.encode(), block.memory.nbytes)

    def forget(self, offset: int) -> None:
        """The payload is gone: readers to come find nothing, those that are there keep what they see."""
        HEADER.pack_into(self._mapping.bytes, offset, b"", 0)

    async def close(self) -> None:
        self._path.unlink(missing_ok=True)
        if self._check is not None:
            self._check.cancel()
        await asyncio.wait((self._populating,))
        if self._growing is not None:
            await asyncio.wait((self._growing,))
        if error := self._populating.exception():
            logger.info("the pages of %s could not be prepared ahead: %s", self._path, error)
        self._is_closed = True
        give_up_ownership(self._file)
        os.close(self._file)
        self._unmap_if_unused()

    def _reserve(self, size_bytes: int) -> Block | None:
        offset = self._blocks.allocate(HEADER_BYTES + size_bytes)
        return None if offset is None else self._block(offset, size_bytes)

    def _block(self, offset: int, size_bytes: int) -> Block:
        unused: Callable[[], None] = lambda: self._home.call(self._unused, offset)  # noqa: E731
        return Block(offset, self._mapping.view(offset + HEADER_BYTES, size_bytes, unused))

    async def _is_backed(self, block: Block) -> bool:
        """Whether the block has its memory, which is taken now if it never was."""
        end = block.offset + HEADER_BYTES + block.memory.nbytes
        while end > self._reserved_bytes:
            if self._growing is None or self._growing.done():
                self._growing = asyncio.get_running_loop().create_task(self._grow(end))
            # Others may wait for the same memory, and the file must not be closed meanwhile.
            if not await asyncio.shield(self._growing):
                return False
        return True

    async def _grow(self, end: int) -> bool:
        goal = min(end + -end % STEP_BYTES, self._mapping.size_bytes)
        more_bytes = goal - self._reserved_bytes
        try:
            await asyncio.to_thread(os.posix_fallocate, self._file, self._reserved_bytes, more_bytes)
        except OSError as error:
            logger.warning("%s gives no %d bytes more: %s", self._path.parent, more_bytes, error.strerror)
            return False
        self._reserved_bytes = goal
        return True

    def _unused(self, offset: int) -> None:
        """No view is left here. Forgotten first, asked for readers then: one that comes in between finds nothing."""
        if offset < self._reserved_bytes:
            self.forget(offset)
        if not self._is_closed and has_reader(self._file, offset):
            self._lingering.add(offset)
            self._check_later()
            return
        self._free(offset)
        if self._is_closed:
            self._unmap_if_unused()

    def _free(self, offset: int) -> None:
        self._blocks.free(offset)
        self._freed.set()

    def _check_later(self) -> None:
        if self._check is None:
            self._check = asyncio.get_running_loop().call_later(READERS_CHECK_S, self._check_readers)

    def _check_readers(self) -> None:
        self._check = None
        for offset in [offset for offset in self._lingering if not has_reader(self._file, offset)]:
            self._lingering.remove(offset)
            self._free(offset)
        if self._lingering:
            self._check_later()

    def _unmap_if_unused(self) -> None:
        """Blocks whose payload is being sent right now keep the memory for that long."""
        if self._blocks.blocks == len(self._lingering):
            self._mapping.close()

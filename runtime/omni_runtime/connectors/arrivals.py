"""The consumer's side of one stream: chunks that have come and wait for their reader."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Self

from omni_contract.wire.codec import allocate
from omni_contract.wire.stage_pb2 import StreamPart
from omni_runtime.connectors.stream_sender import AHEAD_BYTES, AHEAD_CHUNKS


class StreamGoneError(Exception):
    """The owner has the stream no more."""


class LargeChunkError(Exception):
    """A chunk is larger than this process holds."""


class Arrivals:
    """Iterating gives each chunk in aligned memory of its own; ends with the stream, or raises why it broke.

    `tell` is called with a number of chunks once that many have been worked through. They are told in portions, which
    are smaller than what the owner sends ahead. No chunk is put together beyond `limit_bytes`.
    """

    def __init__(self, number: int, tell: Callable[[int], None], limit_bytes: int) -> None:
        self.number = number
        self._tell = tell
        self._limit_bytes = limit_bytes
        self._chunks: deque[memoryview] = deque()
        self._pieces: list[bytes] = []
        self._pieces_bytes = 0
        self._read = 0
        self._read_bytes = 0
        self._end: Exception | None = None
        self._reader: asyncio.Future[None] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> memoryview:
        while not self._chunks:
            if self._end is not None:
                raise self._end
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        chunk = self._chunks.popleft()
        self._count(chunk.nbytes)
        return chunk

    def take(self, part: StreamPart) -> int:
        """Returns how many chunks the part has completed."""
        if self._end is not None:
            return 0
        for chunk in part.chunks:
            self._chunks.append(_joined([chunk]))
        if part.piece:
            self._add_piece(part.piece)
        if part.is_last_piece:
            self._chunks.append(_joined(self._pieces))
            self._drop_pieces()
        if part.is_end:
            self._end = StopAsyncIteration()
        if part.gone:
            self._end = StreamGoneError(part.gone)
        self._wake()
        return len(part.chunks) + part.is_last_piece

    def fail(self, error: Exception) -> None:
        """What has come is still read; no-op if the stream is complete."""
        if self._end is None:
            self._end = error
            self._wake()

    def _add_piece(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._pieces_bytes += len(piece)
        if self._pieces_bytes > self._limit_bytes:
            self._drop_pieces()
            self._end = LargeChunkError(f"a chunk has more than this process's limit of {self._limit_bytes:,} bytes")

    def _drop_pieces(self) -> None:
        self._pieces.clear()
        self._pieces_bytes = 0

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _count(self, size_bytes: int) -> None:
        self._read += 1
        self._read_bytes += size_bytes
        if self._read >= AHEAD_CHUNKS // 2 or self._read_bytes >= AHEAD_BYTES // 2:
            self._tell(self._read)
            self._read = self._read_bytes = 0


def _joined(pieces: list[bytes]) -> memoryview:
    block = allocate(sum(map(len, pieces)))
    start = 0
    for piece in pieces:
        block[start : start + len(piece)] = piece
        start += len(piece)
    return block

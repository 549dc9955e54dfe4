"""The owner's side of all streams that one consumer reads: what comes up together leaves in one message."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from omni_contract.wire.stage_pb2 import ChunkBatch, Handle, ReadBatch, ReadMessage, StreamPart
from omni_runtime.connectors.budget import PayloadGoneError
from omni_runtime.connectors.stream import ChunkStream

BATCH_BYTES = 4 * 2**20
"""Chunks travel together up to about so much. A busy worker sends one batch in each turn of its loop: if they were
small, what it makes would pile up."""
PIECE_BYTES = 2**20
"""A larger chunk goes in pieces."""
AHEAD_CHUNKS = 16
AHEAD_BYTES = 4 * 2**20
"""What may be on its way of one stream beyond the chunks that its consumer has worked through."""

Find: TypeAlias = Callable[[Handle], ChunkStream]
"""The stream of a handle; raises PayloadGoneError."""


class StreamSender:
    """The streams of one call, by their numbers. Those are due of which there may be something to say."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._streams: dict[int, _Sent] = {}
        self._due: dict[int, None] = {}
        self._refused: list[StreamPart] = []
        self._is_listening = True
        self._has_news = asyncio.Event()

    async def listen(self, batches: AsyncIterator[ReadBatch]) -> None:
        """Returns when the consumer reads nothing more."""
        async for batch in batches:
            for message in batch.messages:
                self._hear(message)
        self._is_listening = False
        self._has_news.set()

    async def batches(self) -> AsyncIterator[ChunkBatch]:
        """Ends when the consumer has."""
        while self._is_listening:
            # Wakes in the next turn of the loop, so that what else this turn makes goes along.
            await self._has_news.wait()
            self._has_news.clear()
            while self._due or self._refused:
                if (batch := self._batch()).parts:
                    yield batch

    def _hear(self, message: ReadMessage) -> None:
        """A consumer may speak of a stream whose end it has not heard yet."""
        number = message.number
        match message.WhichOneof("body"):
            case "begin":
                self._begin(number, message.begin)
            case "taken" if number in self._streams:
                self._streams[number].taken(message.taken)
                self._tell(number)
            case "leave":
                self._forget(number)

    def _begin(self, number: int, handle: Handle) -> None:
        try:
            stream = self._find(handle)
            self._streams[number] = _Sent(number, stream)
            stream.begin(lambda: self._tell(number))
        except PayloadGoneError as error:
            self._forget(number)
            self._refused.append(StreamPart(number=number, gone=str(error)))
            self._has_news.set()

    def _tell(self, number: int) -> None:
        if number in self._streams:
            self._due[number] = None
            self._has_news.set()

    def _forget(self, number: int) -> None:
        self._streams.pop(number, None)
        self._due.pop(number, None)

    def _batch(self) -> ChunkBatch:
        """What is due, as far as there is room; the rest stays due."""
        batch, self._refused = ChunkBatch(parts=self._refused), []
        room_bytes = BATCH_BYTES
        while self._due and room_bytes > 0:
            sent = self._streams[next(iter(self._due))]
            # Filled in where it is: chunks are not copied once more.
            part = batch.parts.add(number=sent.number)
            size_bytes = sent.fill(part, room_bytes)
            room_bytes -= size_bytes
            if part.is_end or part.gone:
                self._forget(sent.number)
                continue
            if not size_bytes:
                del batch.parts[-1]
            if not sent.can_go_on:
                del self._due[sent.number]
        return batch


class _Sent:
    """One stream, as far as it was sent."""

    def __init__(self, number: int, stream: ChunkStream) -> None:
        self.number = number
        self._stream = stream
        self._pieces: deque[memoryview] = deque()
        """What is left of a large chunk."""
        self._ahead: deque[int] = deque()
        """The sizes of the chunks that the consumer has not worked through."""
        self._ahead_bytes = 0

    def taken(self, chunks: int) -> None:
        for _ in range(min(chunks, len(self._ahead))):
            self._ahead_bytes -= self._ahead.popleft()

    @property
    def can_go_on(self) -> bool:
        return bool(self._pieces) or (self._stream.has_chunks and self._has_room)

    def fill(self, part: StreamPart, room_bytes: int) -> int:
        """Adds what may go now, which may be nothing; returns its size."""
        size_bytes = 0
        try:
            if not self._pieces:
                size_bytes = self._add_chunks(part, room_bytes)
            if self._pieces:
                size_bytes += self._add_piece(part)
        except PayloadGoneError as error:
            part.gone = str(error)
            return size_bytes
        part.is_end = self._stream.is_complete and not self._pieces
        return size_bytes

    def _add_chunks(self, part: StreamPart, room_bytes: int) -> int:
        """Up to a large one, which is cut into pieces."""
        size_bytes = 0
        while size_bytes < room_bytes and self._has_room and (chunk := self._stream.take()) is not None:
            self._ahead.append(chunk.size_bytes)
            self._ahead_bytes += chunk.size_bytes
            if chunk.size_bytes > PIECE_BYTES:
                self._pieces.extend(chunk.slices(PIECE_BYTES))
                break
            part.chunks.append(chunk.to_bytes())
            size_bytes += chunk.size_bytes
        return size_bytes

    def _add_piece(self, part: StreamPart) -> int:
        piece = self._pieces.popleft()
        part.piece = bytes(piece)
        part.is_last_piece = not self._pieces
        return piece.nbytes

    @property
    def _has_room(self) -> bool:
        return len(self._ahead) < AHEAD_CHUNKS and self._ahead_bytes < AHEAD_BYTES

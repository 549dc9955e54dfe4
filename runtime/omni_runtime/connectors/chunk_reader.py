"""Puts the chunks of a stream together from the messages in which they come: several in one, or one in several."""

from collections.abc import Iterator

from omni_contract.wire.codec import allocate
from omni_contract.wire.stage_pb2 import PayloadSlice


class ChunkReader:
    """`position` is the number of the chunk that comes next."""

    def __init__(self) -> None:
        self.position = 0
        self.has_ended = False
        self._pieces: list[bytes] = []

    def take(self, message: PayloadSlice) -> Iterator[memoryview]:
        """The chunks that the message completes, each in aligned memory of its own."""
        for chunk in message.chunks:
            yield self._whole([chunk])
        if message.data or message.end_of_chunk:
            self._pieces.append(message.data)
        if message.end_of_chunk:
            pieces, self._pieces = self._pieces, []
            yield self._whole(pieces)
        self.has_ended = message.end_of_stream

    def _whole(self, pieces: list[bytes]) -> memoryview:
        self.position += 1
        block = allocate(sum(map(len, pieces)))
        start = 0
        for piece in pieces:
            block[start : start + len(piece)] = piece
            start += len(piece)
        return block

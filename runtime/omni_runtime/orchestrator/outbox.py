"""What waits to be sent to one worker: bounded, and sent as one message whenever the stream is free."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from omni_contract.wire.stage_pb2 import FrontendBatch, FrontendMessage

MESSAGE_BYTES = 512
"""About what names and a handle take in a message."""


class Outbox:
    """A queue of one link's messages, which are filled in where they are: in the batch that leaves.

    Adding never waits; whoever adds looks at `is_full`, which means that the worker does not read.
    """

    def __init__(self, frontend_id: str, most_messages: int, batch_bytes: int) -> None:
        self._frontend_id = frontend_id
        self._most_messages = most_messages
        self._most_bytes = batch_bytes
        self._full: deque[FrontendBatch] = deque()
        self._waiting = 0
        """Messages in all batches that have not left."""
        self._begin_batch()
        self._filled = asyncio.Event()

    @property
    def is_full(self) -> bool:
        return self._waiting >= self._most_messages

    def message(self, request_id: str, attempt: int = 0) -> FrontendMessage:
        """A new message, to be filled in at once; whoever adds much to it says so by `grew`."""
        if self._batch_bytes >= self._most_bytes:
            self._full.append(self._batch)
            self._begin_batch()
        self._batch_bytes += MESSAGE_BYTES
        self._waiting += 1
        self._filled.set()
        return self._batch.messages.add(request_id=request_id, attempt=attempt)

    def grew(self, size_bytes: int) -> None:
        """The newest message takes about so many bytes more."""
        self._batch_bytes += size_bytes

    async def batches(self) -> AsyncIterator[FrontendBatch]:
        """Endless; the first batch says who we are."""
        yield FrontendBatch(frontend_id=self._frontend_id)
        while True:
            # Wakes in the next turn of the loop, so that what else this turn has to say goes along.
            await self._filled.wait()
            yield self.take()

    def take(self) -> FrontendBatch:
        """What waits, as far as it fits into one message."""
        if self._full:
            batch = self._full.popleft()
        else:
            batch = self._batch
            self._begin_batch()
        self._waiting -= len(batch.messages)
        if not self._waiting:
            self._filled.clear()
        return batch

    def _begin_batch(self) -> None:
        self._batch = FrontendBatch()
        self._batch_bytes = 0

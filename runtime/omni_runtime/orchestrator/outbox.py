"""What waits to be sent to one worker: bounded, and sent as one message whenever the stream is free."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from omni_contract.wire.stage_pb2 import FrontendBatch, FrontendMessage


class OutboxFullError(Exception):
    """The worker does not read; its link is as good as broken."""


class Outbox:
    """A queue of one link's messages. `put` never waits; `batches` takes all that is there."""

    def __init__(self, frontend_id: str, most_messages: int, batch_bytes: int) -> None:
        self._frontend_id = frontend_id
        self._most_messages = most_messages
        self._batch_bytes = batch_bytes
        self._waiting: deque[FrontendMessage] = deque()
        self._filled = asyncio.Event()

    def put(self, message: FrontendMessage) -> None:
        if len(self._waiting) >= self._most_messages:
            raise OutboxFullError(f"{self._most_messages} messages wait for the worker")
        self._waiting.append(message)
        self._filled.set()

    async def batches(self) -> AsyncIterator[FrontendBatch]:
        """Endless; the first batch says who we are."""
        yield FrontendBatch(frontend_id=self._frontend_id)
        while True:
            await self._filled.wait()
            yield self.take()

    def take(self) -> FrontendBatch:
        """What waits, as far as it fits into one message."""
        batch, size_bytes = FrontendBatch(), 0
        while self._waiting and size_bytes < self._batch_bytes:
            message = self._waiting.popleft()
            size_bytes += message.ByteSize()
            batch.messages.append(message)
        if not self._waiting:
            self._filled.clear()
        return batch

"""Messages on their way to one frontend: everything that came up in one turn of the event loop leaves as one batch."""

import asyncio
from collections import deque
from collections.abc import Callable

from omni_contract.wire.stage_pb2 import Load, WorkerBatch, WorkerMessage

BATCH_BYTES = 4 * 2**20
BACKLOG_MESSAGES = 4096


class Outbox:
    """Writers fill in their messages where they are, in the batch that leaves next: one message for each attempt.

    Bounded by its writers: before an output they wait in `room`; of progress, a message holds only the newest. Terminal
    messages are always taken; there is one for each request, and requests are limited.
    """

    def __init__(self, load: Callable[[], Load]) -> None:
        self._load = load
        self._full: deque[WorkerBatch] = deque()
        self._waiting = 0
        """Messages in all batches that have not left."""
        self._begin_batch()
        self._load_changed = True
        self._closed = False
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()

    @property
    def has_room(self) -> bool:
        return self._waiting < BACKLOG_MESSAGES

    async def room(self) -> None:
        await self._drained.wait()

    def message(self, request_id: str, attempt: int, added_bytes: int = 0) -> WorkerMessage:
        """What leaves next of an attempt; `added_bytes` is about what the writer is going to add to it."""
        if self._batch_bytes + added_bytes > BATCH_BYTES:
            self._full.append(self._batch)
            self._begin_batch()
        self._batch_bytes += added_bytes
        return self._of_batch.get((request_id, attempt)) or self._add(request_id, attempt)

    def announce_load(self) -> None:
        """Sends the load even if there is nothing else to say."""
        self._load_changed = True
        self._filled.set()

    def close(self) -> None:
        """What is in here is still sent, then `next_batch` answers None."""
        self._closed = True
        self._filled.set()

    async def next_batch(self) -> WorkerBatch | None:
        while not self._waiting and not self._load_changed:
            if self._closed:
                return None
            self._filled.clear()
            # Wakes in the next turn of the loop, so that what else this turn has to say goes along.
            await self._filled.wait()
        return self._take()

    def _begin_batch(self) -> None:
        self._batch = WorkerBatch()
        self._batch_bytes = 0
        self._of_batch: dict[tuple[str, int], WorkerMessage] = {}
        """The messages of the batch, by request id and attempt."""

    def _add(self, request_id: str, attempt: int) -> WorkerMessage:
        message = self._batch.messages.add(request_id=request_id, attempt=attempt)
        self._of_batch[request_id, attempt] = message
        self._waiting += 1
        if not self.has_room:
            self._drained.clear()
        self._filled.set()
        return message

    def _take(self) -> WorkerBatch:
        if self._full:
            batch = self._full.popleft()
        else:
            batch = self._batch
            self._begin_batch()
        batch.load.CopyFrom(self._load())
        self._load_changed = False
        self._waiting -= len(batch.messages)
        if self.has_room:
            self._drained.set()
        return batch

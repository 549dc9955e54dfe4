"""Messages on their way to one frontend: everything that came up in one turn of the event loop leaves as one batch."""

import asyncio
from collections.abc import Callable

from omni_contract.wire.stage_pb2 import Load, WorkerBatch, WorkerMessage

BATCH_MESSAGES = 1024
BATCH_BYTES = 4 * 2**20
BACKLOG_MESSAGES = 4096


class Outbox:
    """Bounded by its writers: those that can wait do so in `room`, progress that finds no room is dropped.

    Terminal messages are always taken; there is one for each request, and requests are limited.
    """

    def __init__(self, load: Callable[[], Load]) -> None:
        self._load = load
        self._messages: list[WorkerMessage] = []
        self._load_changed = True
        self._closed = False
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()

    @property
    def has_room(self) -> bool:
        return len(self._messages) < BACKLOG_MESSAGES

    async def room(self) -> None:
        await self._drained.wait()

    def add(self, message: WorkerMessage) -> None:
        self._messages.append(message)
        if not self.has_room:
            self._drained.clear()
        self._filled.set()

    def announce_load(self) -> None:
        """Sends the load even if there is nothing else to say."""
        self._load_changed = True
        self._filled.set()

    def close(self) -> None:
        """What is in here is still sent, then `next_batch` answers None."""
        self._closed = True
        self._filled.set()

    async def next_batch(self) -> WorkerBatch | None:
        while not self._messages and not self._load_changed:
            if self._closed:
                return None
            self._filled.clear()
            await self._filled.wait()
        batch = WorkerBatch(messages=self._take(), load=self._load())
        self._load_changed = False
        if self.has_room:
            self._drained.set()
        return batch

    def _take(self) -> list[WorkerMessage]:
        """As many messages as one batch may hold, at least one."""
        if len(self._messages) <= 16:
            # Inline payloads are at most 64 KiB, so a few messages always fit.
            taken, self._messages = self._messages, []
            return taken
        size, count = 0, 0
        for message in self._messages[:BATCH_MESSAGES]:
            size += message.ByteSize()
            if size > BATCH_BYTES and count:
                break
            count += 1
        taken, self._messages = self._messages[:count], self._messages[count:]
        return taken

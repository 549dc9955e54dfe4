"""One frontend's pipe: its requests, their payloads, its outbox. When it ends, everything of it is freed."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from omni_contract.wire.errors import OmniError
from omni_contract.wire.logs import log_fields
from omni_contract.wire.stage_pb2 import FrontendBatch, FrontendMessage, WorkerBatch
from omni_runtime.worker import messages
from omni_runtime.worker.job import Job
from omni_runtime.worker.outbox import Outbox
from omni_runtime.worker.parts import InputParts
from omni_runtime.worker.stage import Stage

logger = logging.getLogger(__name__)

PORTION_MESSAGES = 32
"""A large batch is worked off in portions, so that the answers to the first leave while the next are worked on.

In one go, all requests would move through the stages as one convoy, with a single process at work at any time. Smaller
portions mean more messages on the stream, each of which costs both ends as much as three requests.
"""


class _SessionEnded(Exception):
    """Ends the session's task group, which cancels what still runs in it."""


class FrontendSession:
    """All requests of one frontend. Two frontends may use the same request id without touching each other."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._outbox = Outbox(stage.load)
        self._parts = InputParts()
        self._jobs: dict[str, list[Job]] = {}
        """By request id, the newest attempt last: those that run, and those whose payloads are held."""

    async def serve(
        self, batches: AsyncIterator[FrontendBatch], write: Callable[[WorkerBatch], Awaitable[None]]
    ) -> None:
        """Returns when the frontend leaves or after `close`; raises CancelledError when the stream breaks."""
        self._stage.listen(self._outbox.announce_load)
        try:
            async with asyncio.TaskGroup() as tasks:
                ends = (tasks.create_task(self._read(batches, tasks)), tasks.create_task(self._write(write)))
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                raise _SessionEnded
        except* _SessionEnded:
            pass
        finally:
            self._stage.unlisten(self._outbox.announce_load)
            await self._free()

    def close(self) -> None:
        """Ends the stream once what is in the outbox is sent."""
        self._outbox.close()

    async def _read(self, batches: AsyncIterator[FrontendBatch], tasks: asyncio.TaskGroup) -> None:
        async for batch in batches:
            if batch.frontend_id:
                logger.info("frontend attached", extra={"frontend": batch.frontend_id})
            for number, message in enumerate(batch.messages, 1):
                await self._receive(message, tasks)
                if number % PORTION_MESSAGES == 0:
                    await asyncio.sleep(0)
            # A frontend that does not read its answers is not read either.
            await self._outbox.room()

    async def _write(self, write: Callable[[WorkerBatch], Awaitable[None]]) -> None:
        while (batch := await self._outbox.next_batch()) is not None:
            await write(batch)

    async def _receive(self, message: FrontendMessage, tasks: asyncio.TaskGroup) -> None:
        match message.WhichOneof("body"):
            case "start":
                self._start(message, tasks)
            case "part":
                self._parts.add(message.request_id, message.attempt, message.part.data)
            case "cancel":
                await self._cancel(message)
            case "taken":
                self._taken(message)
            case "discard":
                await self._discard(message.request_id)
            case _:
                logger.debug("a message of a kind that this version does not know was ignored")

    def _start(self, message: FrontendMessage, tasks: asyncio.TaskGroup) -> None:
        jobs = self._jobs.get(message.request_id, [])
        if jobs and message.attempt <= jobs[-1].attempt:
            logger.warning("attempt %d is known already", message.attempt, extra={"request_id": message.request_id})
            return
        for older in jobs:
            older.cancel()
        try:
            parts = self._parts.take(message.request_id, message.attempt)
            self._stage.check_ready()
            admission = self._stage.capacity.admit()
        except OmniError as error:
            self._refuse(message, error)
            return
        job = Job(self._stage, self._outbox, message.request_id, message.attempt, admission, self._ended)
        self._jobs.setdefault(message.request_id, jobs).append(job)
        job.begin(message.start, tasks, parts)

    def _refuse(self, message: FrontendMessage, error: OmniError) -> None:
        logger.info("request refused: %s", error.message, extra={"request_id": message.request_id})
        self._stage.metrics.count_outcome(error.code)
        messages.failed(self._outbox.message(message.request_id, message.attempt), error)

    async def _cancel(self, message: FrontendMessage) -> None:
        """Of an attempt that has failed, only a stream may be left that its consumer no longer waits for."""
        for job in self._of(message):
            job.cancel()
            if job.has_failed:
                await job.release()
                self._ended(job)

    def _taken(self, message: FrontendMessage) -> None:
        for job in self._of(message):
            job.taken(message.taken.parts)

    def _of(self, message: FrontendMessage) -> list[Job]:
        """The attempt that the message is about, if it is known here."""
        return [job for job in self._jobs.get(message.request_id, ()) if job.attempt == message.attempt]

    def _ended(self, job: Job) -> None:
        """Nobody needs to discard what holds nothing."""
        jobs = self._jobs.get(job.request_id, [])
        if job in jobs and not job.handles:
            jobs.remove(job)
            if not jobs:
                del self._jobs[job.request_id]

    async def _discard(self, request_id: str) -> None:
        for job in self._jobs.pop(request_id, ()):
            with log_fields(request_id=request_id):
                await job.discard()

    async def _free(self) -> None:
        for request_id in list(self._jobs):
            await self._discard(request_id)

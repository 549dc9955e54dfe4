"""One frontend's pipe: its requests, their payloads, its outbox. When it ends, everything of it is freed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

from omni_contract.wire.errors import OmniError
from omni_contract.wire.logs import log_fields
from omni_contract.wire.stage_pb2 import FrontendBatch, FrontendMessage, WorkerBatch
from omni_runtime.transport.pipe import PipeBrokenError
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


class Incoming(Protocol):
    """What the frontend sends; a pipe, as a session sees it."""

    async def hand_over(self, receive: Callable[[bytes], None]) -> None:
        """Calls it with each batch as it comes, until the frontend leaves; PipeBrokenError if it is lost."""
        ...

    def hold(self) -> None: ...

    def go_on(self) -> None:
        """Hands over what came since `hold`."""
        ...


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

    async def serve(self, incoming: Incoming, write: Callable[[WorkerBatch], Awaitable[None]]) -> None:
        """Returns when the frontend leaves or is lost, or after `close`; raises CancelledError when the call breaks."""
        self._stage.listen(self._outbox.announce_load)
        try:
            async with asyncio.TaskGroup() as tasks:
                ends = (tasks.create_task(self._read(incoming, tasks)), tasks.create_task(self._write(write)))
                try:
                    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    # Nothing may start in a group that ends.
                    incoming.hold()
                raise _SessionEnded
        except* _SessionEnded:
            pass
        finally:
            self._stage.unlisten(self._outbox.announce_load)
            await self._free()

    def close(self) -> None:
        """Ends the stream once what is in the outbox is sent."""
        self._outbox.close()

    async def _read(self, incoming: Incoming, tasks: asyncio.TaskGroup) -> None:
        """A frontend that is lost has left as well as one that says so."""

        def receive(data: bytes) -> None:
            batch = FrontendBatch.FromString(data)
            if batch.frontend_id:
                logger.info("frontend attached", extra={"frontend": batch.frontend_id})
            if len(batch.messages) <= PORTION_MESSAGES and self._outbox.has_room:
                for message in batch.messages:
                    self._receive(message, tasks)
            else:
                incoming.hold()
                tasks.create_task(self._work_off(batch.messages, incoming, tasks))

        with suppress(PipeBrokenError):
            await incoming.hand_over(receive)

    async def _work_off(self, waiting: Sequence[FrontendMessage], incoming: Incoming, tasks: asyncio.TaskGroup) -> None:
        """In portions; nothing else is read meanwhile. A frontend that does not read its answers is not read either."""
        await self._outbox.room()
        for number, message in enumerate(waiting, 1):
            self._receive(message, tasks)
            if number % PORTION_MESSAGES == 0:
                await asyncio.sleep(0)
        incoming.go_on()

    async def _write(self, write: Callable[[WorkerBatch], Awaitable[None]]) -> None:
        while (batch := await self._outbox.next_batch()) is not None:
            await write(batch)

    def _receive(self, message: FrontendMessage, tasks: asyncio.TaskGroup) -> None:
        match message.WhichOneof("body"):
            case "start":
                self._start(message, tasks)
            case "part":
                self._parts.add(message.request_id, message.attempt, message.part.data)
            case "cancel":
                self._cancel(message, tasks)
            case "taken":
                self._taken(message)
            case "discard":
                if message.request_id in self._jobs:
                    tasks.create_task(self._discard(message.request_id))
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

    def _cancel(self, message: FrontendMessage, tasks: asyncio.TaskGroup) -> None:
        """Of an attempt that has failed, only a stream may be left that its consumer no longer waits for."""
        for job in self._of(message):
            job.cancel()
            if job.has_failed:
                tasks.create_task(self._release(job))

    async def _release(self, job: Job) -> None:
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
        """Its jobs stay known until nothing is held for them, so that a session that ends meanwhile frees the rest."""
        with log_fields(request_id=request_id):
            for job in list(self._jobs.get(request_id, ())):
                await job.discard()
        self._jobs.pop(request_id, None)

    async def _free(self) -> None:
        for request_id in list(self._jobs):
            await self._discard(request_id)

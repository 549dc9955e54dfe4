"""One attempt of one request at this stage: fetch the inputs, run the engine, announce the outputs, end once."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import cast

from omni_contract.wire.codec import CodecError, decode
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.logs import bind_log_fields
from omni_contract.wire.payload import Value
from omni_contract.wire.stage_pb2 import Handle, Start, WorkerMessage
from omni_runtime.engines.protocol import (
    EngineDiedError,
    StageEvent,
    StageItem,
    StageNothing,
    StageOutput,
    StageProgress,
    StageRequest,
    StageUsage,
)
from omni_runtime.tracing.spans import REQUEST_ID
from omni_runtime.worker import messages
from omni_runtime.worker.capacity import Admission
from omni_runtime.worker.measures import Measures, microseconds
from omni_runtime.worker.outbox import Outbox
from omni_runtime.worker.outputs import Outputs
from omni_runtime.worker.stage import Stage
from omni_runtime.worker.transfers import Made, Transfers

logger = logging.getLogger(__name__)


class Job:
    """`begin` starts it. Whatever ends it early goes through `_stop`, so that a task that has not begun yet ends well.

    `handles` are the payloads held so far. They are released if the attempt fails; else they belong to the session. A
    stream that breaks off stays until the session says so: its reader would else fail first, with another reason.
    """

    def __init__(
        self,
        stage: Stage,
        outbox: Outbox,
        request_id: str,
        attempt: int,
        admission: Admission,
        ended: Callable[["Job"], None],
    ) -> None:
        self.request_id = request_id
        self.attempt = attempt
        self.has_failed = False
        self._stage = stage
        self._outbox = outbox
        self._admission = admission
        self._ended = ended
        self._is_running = False
        self._stopped_by: OmniError | None = None
        self._stopped_at_s = 0.0
        self._is_discarded = False
        self._outputs: Outputs | None = None
        self._measures: Measures | None = None
        self._engine_s = 0.0

    def begin(self, start: Start, tasks: asyncio.TaskGroup, parts: Sequence[bytes] = ()) -> None:
        """`parts` are of the client's input, before what the start has of it."""
        self._begun_s = time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(start.remaining_ms / 1000, self._expire)
        self._span = self._stage.tracing.start(
            f"run {self._stage.file.stage}", start.traceparent, {REQUEST_ID: self.request_id}, "server"
        )
        self._measures = Measures() if start.measured else None
        deadline_s = self._begun_s + start.remaining_ms / 1000
        self._transfers = Transfers(self._stage, self.request_id, deadline_s, self._span, self._measures, parts)
        if not start.remaining_ms:
            self._expire()
        self._task = tasks.create_task(self._run(start))
        self._task.add_done_callback(self._done)

    def cancel(self) -> None:
        """Aborts within one step; no-op if the attempt has ended or is being aborted already."""
        self._stop(messages.cancelled())

    async def discard(self) -> None:
        """The request is over everywhere: nothing of this attempt stays held, however it ends."""
        self._is_discarded = True
        self.cancel()
        await self.release()

    async def release(self) -> None:
        await self._transfers.release()

    @property
    def handles(self) -> Sequence[Handle]:
        return self._transfers.handles

    def taken(self, parts: int) -> None:
        """The client has read so many parts of the final output."""
        if self._outputs is not None:
            self._outputs.taken(parts)

    def _expire(self) -> None:
        text = f'the deadline passed at stage "{self._stage.file.stage}"'
        self._stop(OmniError(ErrorCode.DEADLINE_EXCEEDED, text))

    def _stop(self, reason: OmniError) -> None:
        if self._stopped_by is None:
            self._stopped_by, self._stopped_at_s = reason, time.monotonic()
            # A task that is cancelled before its first turn never runs a line of its body.
            if self._is_running:
                self._task.cancel()

    def _done(self, _: asyncio.Task[None]) -> None:
        self._timer.cancel()
        self._admission.give_back()
        # Has an end already, unless the whole session went away.
        self._span.end(ErrorCode.CANCELLED)

    async def _run(self, start: Start) -> None:
        self._is_running = True
        # Only now, so that it leaves together with the answer of an engine that is quick.
        self._message().accepted = True
        bind_log_fields(request_id=self.request_id)
        outcome = await self._outcome(start)
        self._is_running = False
        self.has_failed = isinstance(outcome, OmniError)
        if self._is_discarded or self.has_failed:
            await self._transfers.release(and_streams=self._is_discarded or self._stopped_by is not None)
        self._admission.give_back()
        self._tell(outcome)
        self._ended(self)

    async def _outcome(self, start: Start) -> StageUsage | OmniError:
        """What the terminal message will say. Only a session's end goes through as CancelledError."""
        try:
            if self._stopped_by is not None:
                return self._stopped_by
            async with self._stage.capacity:
                return await self._work(start)
        except OmniError as error:
            return error
        except asyncio.CancelledError:
            if self._stopped_by is None:
                raise
            return self._stopped_by
        except MemoryError:
            return OmniError(ErrorCode.OUT_OF_MEMORY, f'stage "{self._stage.file.stage}" ran out of memory')
        except EngineDiedError as error:
            self._stage.engine_died(error)
            return OmniError(ErrorCode.STAGE_FAILED, f'the engine of stage "{self._stage.file.stage}" died')
        except Exception as error:
            # The process boundary: one bad request never takes down the others.
            logger.exception("request failed")
            return OmniError(
                ErrorCode.STAGE_FAILED, f'stage "{self._stage.file.stage}" failed: {type(error).__name__}: {error}'
            )

    async def _work(self, start: Start) -> StageUsage:
        transfers = self._transfers
        try:
            inputs = await transfers.inputs(start.inputs)
            asked = tuple(start.outputs)
            request = StageRequest(self.request_id, inputs, _parameters(start), asked, transfers.readers())
            return await self._engine_run(request)
        finally:
            await transfers.finish_streams()

    async def _engine_run(self, request: StageRequest) -> StageUsage:
        events = cast(AsyncGenerator[StageEvent, None], self._stage.engine.run(request))
        outputs = self._outputs = Outputs(self._transfers, self._announce, request.outputs)
        usage = StageUsage()
        turned_s = asked_s = time.monotonic()
        async with aclosing(events):
            async for event in events:
                self._engine_s += time.monotonic() - asked_s
                match event:
                    case StageProgress():
                        turned_s = self._progress(event, turned_s)
                    case StageItem():
                        await outputs.item(event)
                        if outputs.are_unwanted:
                            return usage
                    case StageNothing():
                        outputs.nothing(event)
                    case StageOutput():
                        await outputs.output(event)
                    case StageUsage():
                        usage = event
                asked_s = time.monotonic()
            self._engine_s += time.monotonic() - asked_s
        await outputs.end()
        return usage

    async def _announce(self, edge: str, made: Made, more: bool) -> None:
        if not self._outbox.has_room:
            await self._outbox.room()
        added_bytes = len(made) if isinstance(made, bytes) else len(made.locator)
        messages.output(self._message(added_bytes), edge, made, more)

    def _progress(self, event: StageProgress, turned_s: float) -> float:
        now_s = time.monotonic()
        self._stage.metrics.step_seconds.observe(now_s - turned_s)
        messages.progress(self._message(), event)
        return now_s

    def _tell(self, outcome: StageUsage | OmniError) -> None:
        metrics, now_s = self._stage.metrics, time.monotonic()
        took_s = now_s - self._begun_s
        metrics.request_seconds.observe(took_s)
        self._span.end("" if isinstance(outcome, StageUsage) else outcome.code)
        if isinstance(outcome, StageUsage):
            self._tell_finished(outcome, took_s)
            return
        metrics.count_outcome(outcome.code)
        if outcome.code is ErrorCode.CANCELLED:
            metrics.cancel_seconds.observe(now_s - self._stopped_at_s)
        messages.failed(self._message(), outcome)
        logger.info("request ended after %.3f s: %s: %s", took_s, outcome.code, outcome.message)

    def _tell_finished(self, usage: StageUsage, took_s: float) -> None:
        metrics = self._stage.metrics
        metrics.count_outcome("finished")
        metrics.work.add(usage, self._engine_s)
        finished = self._message().finished
        messages.finished(finished, usage)
        if self._measures is not None:
            finished.measures.took_us = microseconds(took_s)
            self._measures.fill(finished.measures, usage, self._engine_s, usage.batch_id or metrics.work.requests)
        logger.debug("request finished in %.3f s", took_s)

    def _message(self, added_bytes: int = 0) -> WorkerMessage:
        return self._outbox.message(self.request_id, self.attempt, added_bytes)


def _parameters(start: Start) -> Mapping[str, Value]:
    try:
        return decode(start.parameters) if start.parameters else {}
    except CodecError as error:
        raise OmniError(ErrorCode.INTERNAL, f"the parameters cannot be read: {error}") from error

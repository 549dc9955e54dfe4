"""One attempt of one request at this stage: fetch the inputs, run the engine, announce the outputs, end once."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import cast

from omni_contract.wire.codec import CodecError, decode
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.logs import bind_log_fields, log_fields
from omni_contract.wire.payload import Payload, Value
from omni_contract.wire.stage_pb2 import Handle, Input, Start, WorkerMessage
from omni_runtime.connectors.inline import decode_inline
from omni_runtime.engines.protocol import (
    EngineDiedError,
    StageEvent,
    StageOutput,
    StageProgress,
    StageRequest,
    StageUsage,
)
from omni_runtime.tracing.spans import CONNECTOR, EDGE, REQUEST_ID, SIZE_BYTES, Attributes, Span
from omni_runtime.worker import messages
from omni_runtime.worker.capacity import Admission
from omni_runtime.worker.outbox import Outbox
from omni_runtime.worker.stage import Stage

logger = logging.getLogger(__name__)


class Job:
    """`begin` starts it. Whatever ends it early goes through `_stop`, so that a task that has not begun yet ends well.

    `handles` are the payloads held so far. They are released if the attempt fails; else they belong to the session.
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
        self.handles: list[Handle] = []
        self._stage = stage
        self._outbox = outbox
        self._admission = admission
        self._ended = ended
        self._task: asyncio.Task[None] | None = None
        self._stopped_by: OmniError | None = None
        self._stopped_at_s = 0.0
        self._is_discarded = False

    def begin(self, start: Start, tasks: asyncio.TaskGroup) -> None:
        self._message().accepted = True
        self._begun_s = time.monotonic()
        self._deadline_s = self._begun_s + start.remaining_ms / 1000
        self._timer = asyncio.get_running_loop().call_later(start.remaining_ms / 1000, self._expire)
        self._span = self._stage.tracing.start(
            f"run {self._stage.file.stage}", start.traceparent, {REQUEST_ID: self.request_id}, "server"
        )
        if not start.remaining_ms:
            self._expire()
        task = tasks.create_task(self._run(start))
        # A task that is cancelled before its first turn never runs a line of its body.
        task.add_done_callback(self._done)

    def cancel(self) -> None:
        """Aborts within one step; no-op if the attempt has ended or is being aborted already."""
        self._stop(messages.cancelled())

    async def discard(self) -> None:
        """The request is over everywhere: nothing of this attempt stays held, however it ends."""
        self._is_discarded = True
        self.cancel()
        await self.release()

    async def release(self) -> None:
        handles, self.handles = self.handles, []
        for handle in handles:
            await self._stage.connectors.release(handle)

    def _expire(self) -> None:
        text = f'the deadline passed at stage "{self._stage.file.stage}"'
        self._stop(OmniError(ErrorCode.DEADLINE_EXCEEDED, text))

    def _stop(self, reason: OmniError) -> None:
        if self._stopped_by is None:
            self._stopped_by, self._stopped_at_s = reason, time.monotonic()
            if self._task is not None:
                self._task.cancel()

    def _done(self, _: asyncio.Task[None]) -> None:
        self._timer.cancel()
        self._admission.give_back()
        # Has an end already, unless the whole session went away.
        self._span.end(ErrorCode.CANCELLED)

    async def _run(self, start: Start) -> None:
        self._task = asyncio.current_task()
        bind_log_fields(request_id=self.request_id)
        outcome = await self._outcome(start)
        self._task = None
        if self._is_discarded or isinstance(outcome, OmniError):
            await self.release()
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
        inputs = await self._inputs(start.inputs)
        request = StageRequest(self.request_id, inputs, _parameters(start), tuple(start.outputs))
        events = cast(AsyncGenerator[StageEvent, None], self._stage.engine.run(request))
        usage = StageUsage()
        missing = set(request.outputs)
        turned_s = time.monotonic()
        async with aclosing(events):
            async for event in events:
                match event:
                    case StageProgress():
                        turned_s = self._progress(event, turned_s)
                    case StageOutput():
                        missing.remove(event.edge)
                        await self._output(event)
                    case StageUsage():
                        usage = event
        if missing:
            raise OmniError(ErrorCode.STAGE_FAILED, f"the engine produced nothing for {sorted(missing)}")
        return usage

    async def _inputs(self, inputs: Sequence[Input]) -> Mapping[str, Payload]:
        """All inputs, those behind handles at the same time."""
        if not any(item.HasField("handle") for item in inputs):
            return {item.edge: self._inline(item) for item in inputs}
        try:
            async with asyncio.TaskGroup() as group:
                fetches = {item.edge: group.create_task(self._input(item)) for item in inputs}
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return {edge: fetch.result() for edge, fetch in fetches.items()}

    async def _input(self, item: Input) -> Payload:
        if not item.HasField("handle"):
            return self._inline(item)
        with log_fields(edge=item.edge), self._transfer("get", item.edge) as transfer:
            payload = await self._stage.connectors.get(item.handle, self._remaining_s)
            transfer.end(attributes=_transferred(item.handle))
            end = self._stage.inputs.get(item.edge)
            if end is None or end.retain == "consumed":
                await self._stage.connectors.release(item.handle)
        self._stage.metrics.count_transfer(item.edge, "in", item.handle.size_bytes)
        return payload

    def _inline(self, item: Input) -> Payload:
        self._stage.metrics.count_transfer(item.edge, "in", len(item.inline))
        return decode_inline(item.inline, item.edge, self.request_id)

    async def _output(self, event: StageOutput) -> None:
        end = self._stage.outputs.get(event.edge)
        connector = self._stage.connectors.connector(end.connector if end else "auto")
        with self._transfer("put", event.edge) as transfer:
            handle = await connector.put(self.request_id, event.edge, event.payload, self._remaining_s)
            transfer.end(attributes=_transferred(handle))
        if handle.connector != "inline":
            self.handles.append(handle)
        if not self._outbox.has_room:
            await self._outbox.room()
        messages.output(self._message(len(handle.locator)), handle)
        self._stage.metrics.count_transfer(event.edge, "out", handle.size_bytes)

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
            metrics.count_outcome("finished")
            messages.finished(self._message(), outcome)
            logger.debug("request finished in %.3f s", took_s)
            return
        metrics.count_outcome(outcome.code)
        if outcome.code is ErrorCode.CANCELLED:
            metrics.cancel_seconds.observe(now_s - self._stopped_at_s)
        messages.failed(self._message(), outcome)
        logger.info("request ended after %.3f s: %s: %s", took_s, outcome.code, outcome.message)

    @contextmanager
    def _transfer(self, verb: str, edge: str) -> Iterator[Span]:
        """The block ends the span; if it does not get that far, the transfer has failed."""
        span = self._stage.tracing.start(f"{verb} {edge or 'output'}", self._span.traceparent, {EDGE: edge})
        try:
            yield span
        finally:
            span.end("failed")

    def _message(self, added_bytes: int = 0) -> WorkerMessage:
        return self._outbox.message(self.request_id, self.attempt, added_bytes)

    @property
    def _remaining_s(self) -> float:
        return self._deadline_s - time.monotonic()


def _transferred(handle: Handle) -> Attributes:
    return {CONNECTOR: handle.connector, SIZE_BYTES: handle.size_bytes}


def _parameters(start: Start) -> Mapping[str, Value]:
    try:
        return decode(start.parameters) if start.parameters else {}
    except CodecError as error:
        raise OmniError(ErrorCode.INTERNAL, f"the parameters cannot be read: {error}") from error

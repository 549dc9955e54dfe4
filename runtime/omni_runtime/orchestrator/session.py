"""One request on its way through the stages. `states.py` says what may happen; this carries it out.

A session has no task of its own: links and pools call it, and whoever iterates it reads what comes out. It is in one
of its terminal states exactly once, and from then on nothing of it runs or is held anywhere.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.errors import ErrorCode, OmniError, TransferError
from omni_contract.wire.names import FINAL
from omni_runtime.orchestrator.answers import PARTS_TAKEN_AT_ONCE, Answer, Fetch, Release, made_in, read_answer
from omni_runtime.orchestrator.board import Board
from omni_runtime.orchestrator.failures import bounces, failure_of, is_mendable, lost_replica, no_replica
from omni_runtime.orchestrator.graph import Plan
from omni_runtime.orchestrator.link import Link
from omni_runtime.orchestrator.messages import StartMessages
from omni_runtime.orchestrator.pool import Need, StagePool, Ticket, Viability
from omni_runtime.orchestrator.request import Announced, Completed, OutputLost, Progress, SessionEvent, SessionRequest
from omni_runtime.orchestrator.request_log import log_end
from omni_runtime.orchestrator.states import (
    TERMINAL,
    IllegalTransitionError,
    SessionEventKind,
    SessionState,
    StageEventKind,
    StageState,
    next_session_state,
)
from omni_runtime.orchestrator.steps import EdgePayload, Step, source_of, span_of
from omni_runtime.tracing.spans import REQUEST_ID, Tracing

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SessionContext:
    """What a session needs of the orchestrator."""

    plan: Plan
    pools: Mapping[str, StagePool]
    is_viable: Viability
    fetch: Fetch
    release: Release
    queue_timeout_s: float
    request_timeout_s: float
    tracing: Tracing
    ended: Callable[["Session"], None]
    is_measured: bool = False
    """Workers are asked for what only they know."""


class Session:
    """Use as `async with session: async for event in session`; leaving the block early aborts it on every stage.

    Iteration ends after Completed, or raises OmniError.
    """

    def __init__(self, request: SessionRequest, context: SessionContext) -> None:
        self.request = request
        self.state = SessionState.QUEUED
        self.retries = 0
        self._context = context
        self._board = Board(context.plan)
        self._messages = StartMessages(request)
        self._links: set[Link] = set()
        """Workers that run something for this, or hold it."""
        self._holders: set[Link] = set()
        """Those of them that have announced a payload which lies with them."""
        self._events: deque[SessionEvent | Announced] = deque()
        self._reader: asyncio.Future[None] | None = None
        """Who waits for the next event."""
        self.error: OmniError | None = None
        """Why it ended without an answer."""
        self.took_s = 0.0
        """From its start to its end, once it is over."""
        self._timeout_s = request.timeout_s if request.timeout_s is not None else context.request_timeout_s
        self.began_s = time.monotonic()
        self._deadline_s = self.began_s + self._timeout_s
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(self._timeout_s, self.expire)
        self._span = context.tracing.start("request", request.traceparent, {REQUEST_ID: request.request_id})

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL

    @property
    def steps(self) -> Collection[Step]:
        """The stages of its plan, in order, with what became of each."""
        return self._board.steps.values()

    @property
    def remaining_s(self) -> float:
        return self._deadline_s - time.monotonic()

    def start(self) -> None:
        self._feed(self._board.fed())

    def abort(self) -> None:
        """Ends it on every stage; no-op if it is over."""
        if not self.is_over:
            self._end(SessionEventKind.CANCELLED, OmniError(ErrorCode.CANCELLED, "the request was cancelled"))

    # -- what the caller does

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionEvent:
        while True:
            if self.error is not None:
                raise self.error
            if self._events:
                event = self._events.popleft()
                if not isinstance(event, Announced):
                    return event
                output = await self._read(event)
                if output is not None:
                    return output
            elif self.is_over:
                raise StopAsyncIteration
            else:
                self._reader = self._loop.create_future()
                await self._reader

    async def _read(self, announced: Announced) -> Answer | None:
        """The output, or None if the attempt that made it is no longer the one that counts."""
        step = self._board.steps[announced.stage]
        if not step.counts(announced.attempt):
            return None
        context, request_id = self._context, self.request.request_id
        try:
            answer = await read_answer(step.planned, announced.source, context.fetch, request_id, self.remaining_s)
        except TransferError as exc:
            if not self.is_over and step.counts(announced.attempt):
                self._lost(step, exc)
            return None
        if self.is_over or not step.counts(announced.attempt):
            return None
        self._move(SessionEventKind.ANSWERED)
        step.answer(made_in(answer), time.monotonic())
        if announced.more:
            await self._taken(step, announced)
        else:
            step.is_answered = True
            self._check_complete()
        return answer

    async def _taken(self, step: Step, part: Announced) -> None:
        """Lets the worker go on, and frees what it holds of the part."""
        step.parts_read += 1
        if step.link is not None and step.is_at_worker and step.parts_read % PARTS_TAKEN_AT_ONCE == 0:
            step.link.taken(self.request.request_id, step.attempt, PARTS_TAKEN_AT_ONCE)
        if isinstance(part.source, wire.Handle):
            await self._context.release(part.source)

    # -- what pools tell

    def assigned(self, stage: str, link: Link) -> None:
        step = self._board.steps[stage]
        step.begin(link, self._board.wanted(step), time.monotonic())
        step.span = span_of(step, self._context.tracing, self._span, self.request.request_id)
        self._links.add(link)
        for part in self._messages.parts_ahead(step):
            link.send_ahead(self.request.request_id, step.attempt, part)
        start = link.start(self, self.request.request_id, step.attempt, self.request.kind)
        link.outbox.grew(self._messages.fill(start, step, self._board.payloads, self.remaining_s))
        if self._context.is_measured:
            start.measured = True

    def unavailable(self, stage: str) -> None:
        error = no_replica(stage, self._context.queue_timeout_s, self._context.pools)
        self._give_up(self._board.steps[stage], error)

    def pushed_out(self, error: OmniError) -> None:
        self._end(SessionEventKind.REFUSED, error)

    # -- what links tell

    def received(self, link: Link, message: wire.WorkerMessage) -> None:
        step = self._board.steps.get(link.stage)
        if self.is_over or step is None or not step.expects(link, message):
            return
        try:
            self._advanced(step, message)
        except IllegalTransitionError as exc:
            logger.exception("session in a state it must not be in", extra={"request_id": self.request.request_id})
            self._end(SessionEventKind.REFUSED, OmniError(ErrorCode.INTERNAL, str(exc)))

    def link_down(self, link: Link, reason: str) -> None:
        self._links.discard(link)
        step = self._board.steps[link.stage]
        if self.is_over or step.link is not link:
            return
        if step.state is StageState.SENT:
            step.fail_over()
            self._bounced(step)
        elif self._is_done_with(step):
            return
        elif step.state is StageState.RUNNING or self._board.holds_what_is_needed(step):
            self._lost(step, lost_replica(step.name, step.replica, reason))

    # -- what follows from it

    def _advanced(self, step: Step, message: wire.WorkerMessage) -> None:
        if message.accepted:
            step.move(StageEventKind.ACCEPTED)
            self._move(SessionEventKind.ACCEPTED)
        if message.HasField("progress"):
            self._progressed(step, message.progress)
        for output in message.outputs:
            self._announced(step, output)
        match message.WhichOneof("end"):
            case "finished":
                self._finished(step, message.finished)
            case "failed":
                self._failed(step, message.failed)

    def _progressed(self, step: Step, progress: wire.Progress) -> None:
        """Only the newest is kept for a reader who is behind."""
        newest = self._events[-1] if self._events else None
        if isinstance(newest, Progress) and newest.stage == step.name:
            self._events.pop()
        self._emit(Progress(step.name, progress.step, progress.total))

    def _announced(self, step: Step, output: wire.Output) -> None:
        edge, source = output.edge, source_of(output)
        if not output.more:
            step.wanted = () if step.wanted == (edge,) else tuple(wanted for wanted in step.wanted if wanted != edge)
        assert step.link is not None and step.replica is not None, "only a step that has begun is listened to"
        if not isinstance(source, bytes):
            self._holders.add(step.link)
        if edge == FINAL:
            self._emit(Announced(step.name, step.attempt, source, output.more))
        else:
            self._board.payloads[edge] = EdgePayload(source, step.link, step.replica)
            consumer = self._board.steps[self._context.plan.consumers[edge]]
            if self._board.is_fed(consumer):
                self._feed([consumer])

    def _finished(self, step: Step, finished: wire.Finished) -> None:
        if step.wanted:
            text = f'stage "{step.name}" finished without an output for {", ".join(map(repr, step.wanted))}'
            self._give_up(step, OmniError(ErrorCode.STAGE_FAILED, text))
            return
        step.finish(finished, time.monotonic())
        if step.link is not None and step.link not in self._holders:
            self._links.discard(step.link)
            step.link.forget(self.request.request_id)
        self._check_complete()

    def _failed(self, step: Step, failed: wire.Failed) -> None:
        error = failure_of(failed)
        if self._is_done_with(step):
            return
        if step.state is StageState.SENT and bounces(error):
            self._refused(step, error)
        elif is_mendable(error, failed):
            self._lost(step, error)
        else:
            self._give_up(step, error)

    def _is_done_with(self, step: Step) -> bool:
        """True if all that read what the stage makes have ended before it: its failure is nobody's, so it is done."""
        if step.state is not StageState.RUNNING or self._board.is_needed(step):
            return False
        step.move(StageEventKind.FINISHED)
        self._check_complete()
        return True

    def _refused(self, step: Step, error: OmniError) -> None:
        """A full worker will have room again, one that leaves will not."""
        if error.code is ErrorCode.OVERLOADED and step.link is not None:
            self._context.pools[step.name].pause(step.link)
        else:
            step.fail_over()
        self._bounced(step)

    def _bounced(self, step: Step) -> None:
        step.move(StageEventKind.BOUNCED)
        self._enqueue(step, is_urgent=True)

    def _lost(self, step: Step, error: OmniError) -> None:
        """Work is gone: run again what is needed, or fail if the table says that it may not."""
        if next_session_state(self.state, SessionEventKind.LOST) is SessionState.FAILED:
            self._give_up(step, error)
            return
        self._move(SessionEventKind.LOST)
        self.retries += 1
        logger.warning("retrying: %s", error, extra={"request_id": self.request.request_id, "stage": step.name})
        step.fail_over()
        self._restart(step)

    def _give_up(self, failed: Step, error: OmniError) -> None:
        """Ends the request, or only what depends on the stage if the caller takes the other outputs without it."""
        dropped = self._board.useless_without(failed) if self.request.takes_what_is_left else []
        if len(dropped) in (0, len(self._board.steps)):
            self._end(SessionEventKind.REFUSED, error)
            return
        for step in dropped:
            if step.planned.modality is not None and not step.is_answered:
                self._emit(OutputLost(step.planned.modality, error))
            self._stop(step)
            step.drop()
        self._check_complete()

    def _restart(self, lost: Step) -> None:
        for step in self._board.to_restart(lost):
            self._stop(step)
            self._board.reset(step)
        self._feed(self._board.fed(), is_urgent=True)

    def _stop(self, step: Step) -> None:
        if step.ticket is not None:
            self._context.pools[step.name].withdraw(step.ticket)
            step.ticket = None
        elif step.is_at_worker and step.link in self._links and step.link is not None:
            step.link.cancel(self.request.request_id, step.attempt)

    def _feed(self, fed: Iterable[Step], is_urgent: bool = False) -> None:
        """Queues stages that have got all of their inputs."""
        for step in fed:
            step.feed(time.monotonic())
            self._enqueue(step, is_urgent)

    def _enqueue(self, step: Step, is_urgent: bool = False) -> None:
        ticket = step.ticket = Ticket(
            waiter=self,
            need=Need(self._context.is_viable, self._board.contracts(step)),
            avoid=step.avoid,
            queue_timeout_s=self._context.queue_timeout_s,
            tenant=self.request.tenant,
            priority=self.request.priority,
            kind=self.request.kind,
            wish=self._board.wish(step, self.request.affinity),
        )
        self._context.pools[step.name].enqueue(ticket, is_urgent)

    def _check_complete(self) -> None:
        if self.state is not SessionState.ANSWERING or not self._board.is_complete:
            return
        steps = self._board.steps.values()
        usage = {step.name: step.usage for step in steps}
        replicas = {step.name: step.replica.name for step in steps if step.replica is not None}
        self._emit(Completed(usage, replicas))
        self._end(SessionEventKind.COMPLETED, None)

    def expire(self) -> None:
        """Its time is up; called by a timer of its own."""
        unfinished = ", ".join(self._board.unfinished)
        text = f"the answer took more than {self._timeout_s:g} s; unfinished: {unfinished or 'reading the output'}"
        self._end(SessionEventKind.EXPIRED, OmniError(ErrorCode.DEADLINE_EXCEEDED, text))

    def _end(self, event: SessionEventKind, error: OmniError | None) -> None:
        """The only way into a terminal state: afterwards no worker runs or holds anything for the request."""
        self._move(event)
        self.error = error
        self._timer.cancel()
        self.took_s = self._timeout_s - self.remaining_s
        for step in self._board.steps.values():
            self._stop(step)
            step.span.end(event)
        self._span.end(error.code if error else "")
        for link in self._links:
            link.discard(self.request.request_id)
        self._links.clear()
        self._wake()
        log_end(self.request.request_id, self.state, self.took_s, self.error)
        self._context.ended(self)

    # -- small questions

    def _move(self, event: SessionEventKind) -> None:
        self.state = next_session_state(self.state, event)

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _emit(self, event: SessionEvent | Announced) -> None:
        self._events.append(event)
        self._wake()

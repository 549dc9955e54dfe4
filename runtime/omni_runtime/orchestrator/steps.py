"""One stage of one request: where it is, who does it, and what it has announced."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from omni_contract.wire import stage_pb2 as wire
from omni_runtime.orchestrator.graph import PlannedStage
from omni_runtime.orchestrator.link import Link
from omni_runtime.orchestrator.made import NOTHING_MADE, Made
from omni_runtime.orchestrator.pool import Ticket
from omni_runtime.orchestrator.request import StageUsage
from omni_runtime.orchestrator.routing import ReplicaInfo
from omni_runtime.orchestrator.states import StageEventKind, StageState, next_stage_state
from omni_runtime.tracing.spans import (
    ATTEMPT,
    NO_SPAN,
    REPLICA,
    REQUEST_ID,
    STAGE,
    Attributes,
    Span,
    Tracing,
    UnrecordedSpan,
)

Source: TypeAlias = bytes | wire.Handle
NO_USAGE = StageUsage()
AT_WORKER = frozenset({StageState.SENT, StageState.RUNNING})


@dataclass(eq=False, slots=True)
class Step:
    """`attempt` counts the tries; messages of an earlier one are stale. `avoid` holds addresses that failed here."""

    planned: PlannedStage
    name: str
    state: StageState = StageState.WAITING
    attempt: int = 0
    wanted: tuple[str, ...] = ()
    """The edges that the current attempt has been asked for and has not announced yet."""
    link: Link | None = None
    replica: ReplicaInfo | None = None
    ticket: Ticket | None = None
    avoid: frozenset[str] = frozenset()
    is_answered: bool = False
    is_dropped: bool = False
    """The request goes on without it."""
    parts_read: int = 0
    """Of the final output of the current attempt."""
    usage: StageUsage = NO_USAGE
    span: Span = NO_SPAN
    """Of the current attempt, from its start to its end."""
    fed_s: float = 0.0
    sent_s: float = 0.0
    ended_s: float = 0.0
    """When it had all inputs, went to a worker, and finished there; the last time, by our monotonic clock."""
    first_s: float = 0.0
    """When the caller got the first of its final output."""
    measures: wire.Measures | None = None
    """What only the worker knows, if it was asked."""
    made: Made = NOTHING_MADE

    @property
    def is_at_worker(self) -> bool:
        return self.state in AT_WORKER

    @property
    def has_worked(self) -> bool:
        """True once its last attempt came to its end; a stage that was dropped has not, finished as it is."""
        return self.state is StageState.FINISHED and self.ended_s >= self.sent_s > 0

    @property
    def is_active(self) -> bool:
        return self.state not in (StageState.WAITING, StageState.FINISHED)

    def move(self, event: StageEventKind) -> None:
        before, self.state = self.state, next_stage_state(self.state, event)
        if self.state not in AT_WORKER and before in AT_WORKER:
            self.span.end("" if self.state is StageState.FINISHED else event)

    def feed(self, now_s: float) -> None:
        self.move(StageEventKind.FED)
        self.fed_s = now_s

    def begin(self, link: Link, wanted: tuple[str, ...], now_s: float) -> None:
        self.move(StageEventKind.ASSIGNED)
        self.attempt += 1
        self.link, self.replica, self.ticket = link, link.replica, None
        self.wanted = wanted
        self.parts_read = 0
        self.sent_s = now_s

    def finish(self, finished: wire.Finished, now_s: float) -> None:
        self.usage = usage_of(finished.usage)
        self.ended_s = now_s
        if finished.HasField("measures"):
            self.measures = finished.measures
        self.move(StageEventKind.FINISHED)

    def answer(self, made: Made, now_s: float) -> None:
        """A part of the final output, or all of it, has gone to the caller."""
        self.first_s = self.first_s or now_s
        if made is not NOTHING_MADE:
            self.made += made

    def expects(self, link: Link, message: wire.WorkerMessage) -> bool:
        """False for what a replaced or finished attempt still sends."""
        return self.link is link and self.attempt == message.attempt and self.is_at_worker

    def counts(self, attempt: int) -> bool:
        """False for an attempt whose outputs another one makes again."""
        is_alive = self.is_at_worker or self.state is StageState.FINISHED
        return self.attempt == attempt and is_alive and not self.is_dropped

    def drop(self) -> None:
        self.move(StageEventKind.DROPPED)
        self.is_dropped = self.is_answered = True

    def fail_over(self) -> None:
        """The replica that has it now is not asked again while there is another."""
        if self.link is not None:
            self.avoid |= {self.link.address}


class EdgePayload(NamedTuple):
    """What was announced on an edge: inline, or by a handle of a payload that the producer's worker holds."""

    source: Source
    producer: Link
    replica: ReplicaInfo

    @property
    def is_readable(self) -> bool:
        """False if it was held by a process that is gone."""
        if isinstance(self.source, bytes):
            return True
        return self.producer.replica is not None and self.producer.replica.boot_id == self.replica.boot_id


def span_of(step: Step, tracing: Tracing, parent: Span, request_id: str) -> Span:
    if isinstance(parent, UnrecordedSpan):
        return parent
    replica = step.replica.name if step.replica else ""
    attributes: Attributes = {STAGE: step.name, REPLICA: replica, ATTEMPT: step.attempt, REQUEST_ID: request_id}
    return tracing.start(f"stage {step.name}", parent.traceparent, attributes, "client")


def source_of(message: wire.Output) -> Source:
    return message.inline if message.WhichOneof("source") == "inline" else message.handle


def usage_of(message: wire.Usage) -> StageUsage:
    return StageUsage(message.input_tokens, message.output_tokens, message.steps, message.compute_seconds)

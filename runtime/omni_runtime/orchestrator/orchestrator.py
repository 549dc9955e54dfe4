"""The orchestrator: admits requests, starts their sessions, and says how the stages are."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

from omni_contract.wire.stage_table import StageTable
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.orchestrator.admission import Queue, admit
from omni_runtime.orchestrator.discovery.protocol import Discovery
from omni_runtime.orchestrator.graph import Plan, output_modalities
from omni_runtime.orchestrator.membership import Membership
from omni_runtime.orchestrator.request import Completed, FinalChunk, FinalOutput, SessionRequest, SessionResult
from omni_runtime.orchestrator.session import Session, SessionContext
from omni_runtime.orchestrator.settings import OrchestratorSettings


@dataclass(frozen=True)
class ReplicaStatus:
    name: str
    address: str
    revision: str
    is_routable: bool
    is_asleep: bool
    in_flight: int
    max_in_flight: int


@dataclass(frozen=True)
class StageStatus:
    """What this frontend knows of a stage."""

    name: str
    waiting: int
    replicas: tuple[ReplicaStatus, ...]

    @property
    def is_live(self) -> bool:
        return any(replica.is_routable for replica in self.replicas)

    @property
    def is_asleep(self) -> bool:
        return not self.is_live and any(replica.is_asleep for replica in self.replicas)


class Orchestrator:
    """Use inside `async with orchestrator.running()`; everything happens on the event loop that runs it."""

    def __init__(self, table: StageTable, discovery: Discovery, settings: OrchestratorSettings) -> None:
        self._membership = Membership(table, discovery, settings)
        self._tracing = settings.tracing
        self._sessions: set[Session] = set()
        self._transport = settings.transport
        self._largest_input_bytes = settings.largest_input_bytes
        self._contexts_of = table
        self._contexts: dict[Plan, SessionContext] = {}
        store = PayloadStore(settings.largest_output_bytes)
        self._connectors = ConnectorSet("", secrets.token_hex(8), store, transport=settings.transport)
        self.retries_total = 0
        self._is_measured = settings.is_measured
        self._observers: list[Callable[[Session], None]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Follows the stages while the block runs; sessions still open at its end are aborted."""
        await self._connectors.open()
        try:
            async with asyncio.TaskGroup() as tasks:
                following = tasks.create_task(self._membership.run(), name="membership")
                try:
                    yield self
                finally:
                    self._abort_all()
                    following.cancel()
        finally:
            await self._connectors.close()

    @property
    def table(self) -> StageTable:
        return self._membership.table

    @property
    def is_ready(self) -> bool:
        """True once each stage was seen live or asleep, or some output could be served for a while without the rest.

        It stays so, since a later loss is answered with 503.
        """
        return self._membership.is_ready

    async def wait_ready(self) -> None:
        await self._membership.wait_ready()

    @property
    def certificate_expires_s(self) -> float | None:
        """Unix seconds; None without TLS."""
        return self._transport.expires_s

    def observe(self, observer: Callable[[Session], None]) -> None:
        """Calls it with each session that is over."""
        self._observers.append(observer)

    @property
    def open_sessions(self) -> int:
        return len(self._sessions)

    def stages(self) -> tuple[StageStatus, ...]:
        return tuple(self._status(stage.name) for stage in self.table.stages)

    def servable(self) -> dict[str, bool]:
        """For each output of the model: whether a whole chain of stages could serve it now."""
        return {modality: self._membership.can_serve(modality) for modality in output_modalities(self.table)}

    def losses(self) -> dict[str, str]:
        """For each output that cannot be served now: why."""
        return {modality: self._loss(modality) for modality, can_be in self.servable().items() if not can_be}

    def submit(self, request: SessionRequest) -> Session:
        """A started session. Raises OmniError if the request cannot be planned, OverloadedError if too many wait."""
        return self.submit_all([request])[0]

    def submit_all(self, requests: Sequence[SessionRequest]) -> list[Session]:
        """All of them, or none; they are one tenant's."""
        for request in requests:
            request.check_payload(self._largest_input_bytes)
        plans = [self._membership.plan(request.modalities) for request in requests]
        self._admit(plans[0], requests[0].tenant, len(requests))
        sessions = [Session(request, self._context(plan)) for request, plan in zip(requests, plans, strict=True)]
        self._sessions.update(sessions)
        for session in sessions:
            session.start()
        return sessions

    async def run(self, request: SessionRequest) -> SessionResult:
        """The whole answer; cancelling this aborts the session on every stage."""
        return await collect(self.submit(request))

    def _context(self, plan: Plan) -> SessionContext:
        """One for all requests of a plan; a new table has new plans."""
        if self._contexts_of is not self.table:
            self._contexts_of, self._contexts = self.table, {}
        if plan not in self._contexts:
            self._contexts[plan] = self._new_context(plan)
        return self._contexts[plan]

    def _new_context(self, plan: Plan) -> SessionContext:
        limits = self.table.limits
        return SessionContext(
            plan=plan,
            pools=self._membership.pools,
            is_viable=self._membership.viability(plan),
            fetch=self._connectors.get,
            release=self._connectors.release,
            queue_timeout_s=limits.queue_timeout_seconds,
            request_timeout_s=limits.request_timeout_seconds,
            ended=self._ended,
            tracing=self._tracing,
            is_measured=self._is_measured,
        )

    def _admit(self, plan: Plan, tenant: str, arriving: int) -> None:
        pools = self._membership.pools
        first = pools[plan.stages[0].name]
        waiting, free_slots = sum(pool.waiting for pool in pools.values()), first.free_slots
        if not waiting and arriving <= free_slots:
            return
        queue = Queue(
            waiting=waiting,
            free_slots=free_slots,
            most=self.table.limits.max_queue_length,
            drain_s=self._drain_s(),
            of_tenant=first.waiting_of_tenant,
        )
        for longest in admit(queue, tenant, arriving):
            first.push_out(longest, queue.refusal)

    def _drain_s(self) -> float:
        """About how long the slowest stage takes to work off half of what waits for it."""
        return max((pool.drain_s / 2 for pool in self._membership.pools.values()), default=1.0)

    def _ended(self, session: Session) -> None:
        self._sessions.discard(session)
        self.retries_total += session.retries
        for observer in self._observers:
            observer(session)

    def _abort_all(self) -> None:
        for session in list(self._sessions):
            session.abort()

    def _loss(self, modality: str) -> str:
        away = ", ".join(self._membership.away(modality))
        return f"no {modality}: no replica of {away} is ready" if away else f"no {modality}: no replicas fit together"

    def _status(self, stage: str) -> StageStatus:
        pool = self._membership.pools[stage]
        replicas = tuple(
            ReplicaStatus(
                name=link.replica.name if link.replica else "",
                address=link.address,
                revision=link.replica.revision if link.replica else "",
                is_routable=link.is_routable,
                is_asleep=link.is_asleep,
                in_flight=link.in_flight,
                max_in_flight=link.max_in_flight,
            )
            for link in pool.links.values()
        )
        return StageStatus(stage, pool.waiting, replicas)


async def collect(session: Session) -> SessionResult:
    """Reads a session to its end."""
    outputs: list[FinalOutput] = []
    chunks: list[FinalChunk] = []
    async with session:
        async for event in session:
            match event:
                case FinalOutput():
                    outputs.append(event)
                case FinalChunk():
                    chunks.append(event)
                case Completed():
                    return SessionResult(tuple(outputs), tuple(chunks), event.usage, event.replicas)
    raise AssertionError("a session ends with Completed or raises")

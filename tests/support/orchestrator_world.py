"""A frontend's sessions and workers without a network: a test says what happens next, and sees what comes of it."""

import asyncio
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.errors import TransferError
from omni_contract.wire.names import edge_name
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_table import StageTable, TableStage
from omni_runtime.orchestrator.graph import plan
from omni_runtime.orchestrator.link import Link
from omni_runtime.orchestrator.membership import Membership
from omni_runtime.orchestrator.pool import StagePool
from omni_runtime.orchestrator.request import FinalChunk, FinalOutput, SessionRequest
from omni_runtime.orchestrator.session import Session, SessionContext
from omni_runtime.orchestrator.settings import OrchestratorSettings
from omni_runtime.tracing.spans import UNTRACED
from tests.support.world_worker import Manner, Worker

ITEMS = 3


@dataclass(frozen=True)
class Shape:
    """A model of the world: which of its edges stream, and whether it answers the client part by part."""

    table: StageTable
    streamed: frozenset[str] = frozenset()
    in_parts: bool = False
    items: int = ITEMS

    def manner(self, stage: TableStage) -> Manner:
        of_stage = {edge_name(e.source, e.target) for e in self.table.edges if stage.name in (e.source, e.target)}
        makes_items = bool(of_stage & self.streamed) or (self.in_parts and stage.output is not None)
        return Manner(self.items if makes_items else 1, self.in_parts and makes_items, self.streamed & of_stage)

    def answers(self, prompt: str) -> dict[str, str]:
        """What each final stage has to answer; the simple reference that every run is compared with."""
        return {stage.name: ",".join(self._items(stage, prompt)) for stage in self.table.stages if stage.output}

    def _items(self, stage: TableStage, prompt: str) -> list[str]:
        manner, stages = self.manner(stage), {one.name: one for one in self.table.stages}
        inputs = {
            edge_name(edge.source, edge.target): self._items(stages[edge.source], prompt)
            for edge in self.table.edges
            if edge.target == stage.name
        }
        return [
            manner.item(stage.name, number, self._parts(inputs, number) or [prompt]) for number in range(manner.items)
        ]

    def _parts(self, inputs: dict[str, list[str]], number: int) -> list[str]:
        return [items[number] if edge in self.streamed else ",".join(items) for edge, items in inputs.items()]


class World:
    """A model's workers and sessions; every method is one thing that may happen."""

    def __init__(self, shape: Shape, replicas: int, slots: int) -> None:
        settings = OrchestratorSettings(frontend_id="world")
        self.shape = shape
        self._plan = plan(shape.table)
        self._boots = itertools.count()
        self.membership = Membership(shape.table, _NoDiscovery(), settings)
        self.workers: list[Worker] = []
        self.sessions: list[Session] = []
        self.ends: list[Session] = []
        self.parts: dict[str, dict[str, list[str]]] = {}
        """What each caller has read so far, by request and stage."""
        self.answers: dict[str, dict[str, str]] = {}
        """The whole answers."""
        for stage, index in itertools.product(shape.table.stages, range(replicas)):
            pool = self.pools[stage.name]
            link = Link(stage.name, f"unix:{stage.name}-{index}", settings, self.membership, pool.work)
            pool.links[link.address] = link
            self.workers.append(Worker(link, slots, shape.manner(stage), self._owner))
        for worker in self.workers:
            self.join(worker)

    @property
    def pools(self) -> dict[str, StagePool]:
        return self.membership.pools

    # -- what may happen to sessions

    def arrive(self) -> Session:
        request = SessionRequest(f"r{len(self.sessions)}", {"prompt": f"r{len(self.sessions)}"})
        context = SessionContext(
            plan=self._plan,
            pools=self.pools,
            is_viable=self.membership.viability(self._plan),
            fetch=self._fetch,
            release=self._release,
            queue_timeout_s=3600,
            request_timeout_s=3600,
            ended=self.ends.append,
            tracing=UNTRACED,
        )
        session = Session(request, context)
        self.sessions.append(session)
        session.start()
        self.deliver()
        return session

    async def read(self, session: Session) -> None:
        """What the session has for its caller now; the caller never waits here."""
        try:
            # Anything that has to wait is over time at once.
            async with asyncio.timeout(0):
                async for event in session:
                    if isinstance(event, FinalOutput | FinalChunk):
                        self._note(session.request.request_id, event)
        except TimeoutError:
            return

    # -- what may happen to workers

    def join(self, worker: Worker) -> None:
        """A new process, or the old one again if only the stream to it was broken."""
        if not worker.is_up:
            worker.boot = worker.boot or f"boot-{next(self._boots)}"
            worker.link.attached(self._info(worker))
            self.deliver()

    def die(self, worker: Worker) -> None:
        """Killed, and everybody knows at once."""
        if worker.is_up:
            self.vanish(worker)
            worker.is_gone = False
            worker.link.detached("killed")
            self.deliver()

    def vanish(self, worker: Worker) -> None:
        """Killed, and the frontend learns of it later: by what cannot be read any more, or when it dies."""
        if worker.is_up:
            worker.forget()
            worker.boot, worker.is_gone = "", True

    def break_stream(self, worker: Worker) -> None:
        """The pipe breaks: the worker frees all that the frontend had there, and lives on."""
        if worker.is_up and not worker.is_gone:
            for work in worker.work:
                worker.stop_reading(work)
            worker.forget()
            worker.link.detached("broken")
            self.deliver()

    def drain(self, worker: Worker) -> None:
        if worker.is_up:
            worker.link.received(wire.WorkerBatch(load=wire.Load(draining=True)))
            self.deliver()

    def advance(self, worker: Worker, index: int) -> bool:
        """An attempt works on by one small step; False if there is none, or it has to wait for another."""
        if not worker.work:
            return False
        moved = worker.advance(worker.work[index % len(worker.work)])
        self.deliver()
        return moved

    def advance_any(self) -> bool:
        """The first attempt that can work on does; False if there is none."""
        return any(self.advance(worker, index) for worker in self.workers for index in range(len(worker.work)))

    def answer(self, worker: Worker, index: int) -> None:
        """An attempt is accepted, gives its outputs inline and finishes, all in one message; no-op if it streams."""
        if worker.work:
            worker.answer(worker.work[index % len(worker.work)])
            self.deliver()

    def fail(self, worker: Worker, index: int, code: str, retryable: bool) -> None:
        if worker.work:
            work = worker.work[index % len(worker.work)]
            worker.send(work, failed=wire.Failed(code=code, message=code, retryable=retryable))
            self.deliver()

    def deliver(self) -> None:
        """Moves what the orchestrator has sent to the workers until nothing is on its way."""
        is_moving = True
        while is_moving:
            is_moving = False
            for worker in self.workers:
                for message in worker.link.outbox.take().messages if worker.is_up else ():
                    is_moving = True
                    worker.take(message)

    # -- what sessions ask for

    def _note(self, request_id: str, event: FinalOutput | FinalChunk) -> None:
        parts = self.parts.setdefault(request_id, {}).setdefault(event.stage, [])
        assert event.stage not in self.answers.setdefault(request_id, {}), "nothing comes after the last part"
        parts += [str(item["trail"]) for item in _items_of(event)]
        if isinstance(event, FinalOutput) or event.is_last:
            self.answers[request_id][event.stage] = ",".join(parts)

    def _owner(self, handle: wire.Handle) -> Worker | None:
        return next((worker for worker in self.workers if worker.boot == handle.boot_id), None)

    async def _fetch(self, handle: wire.Handle, remaining_s: float) -> Payload:
        owner = self._owner(handle)
        if owner is None or handle.key not in owner.held:
            raise TransferError(handle.edge, handle.request_id, "gone")
        return {"trail": owner.held[handle.key]}

    async def _release(self, handle: wire.Handle) -> None:
        if (owner := self._owner(handle)) is not None:
            owner.held.pop(handle.key, None)

    def _info(self, worker: Worker) -> wire.WorkerInfo:
        stage, edges = worker.link.stage, self.shape.table.edges
        return wire.WorkerInfo(
            stage=stage,
            boot_id=worker.boot,
            replica=worker.link.address,
            max_in_flight=worker.slots,
            inputs=[_contract(e.source, e.target) for e in edges if e.target == stage],
            outputs=[_contract(e.source, e.target) for e in edges if e.source == stage],
            state=wire.WORKER_STATE_READY,
        )


class _NoDiscovery:
    def topologies(self) -> None:  # type: ignore[override]
        raise NotImplementedError


def _items_of(event: FinalOutput | FinalChunk) -> Iterable[Payload]:
    return event.items if isinstance(event, FinalChunk) else [event.payload]


def _contract(source: str, target: str) -> wire.EdgeContract:
    return wire.EdgeContract(edge=edge_name(source, target), contract_hash="h")

"""Workers without a network: a test moves each of them on by one step and sees what the orchestrator does.

They keep the rules of the protocol (payloads that are consumed are gone, a cancel is answered once), and they remember
what they hold, so that a test can ask whether anything was left behind.
"""

import asyncio
import itertools
from dataclasses import dataclass, field

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.codec import decode, encode
from omni_contract.wire.errors import TransferError
from omni_contract.wire.names import edge_name
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_table import StageTable
from omni_runtime.orchestrator.graph import plan
from omni_runtime.orchestrator.link import Link
from omni_runtime.orchestrator.membership import Membership
from omni_runtime.orchestrator.pool import StagePool
from omni_runtime.orchestrator.request import FinalOutput, SessionRequest
from omni_runtime.orchestrator.session import Session, SessionContext
from omni_runtime.orchestrator.settings import OrchestratorSettings
from omni_runtime.tracing.spans import UNTRACED


@dataclass
class Work:
    """One attempt at a worker."""

    request_id: str
    attempt: int
    start: wire.Start
    trail: str = ""
    is_accepted: bool = False


@dataclass
class Worker:
    """`held` maps the keys of payloads to what they hold."""

    link: Link
    slots: int
    boot: str
    work: list[Work] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)
    most_at_once: int = 0

    @property
    def is_up(self) -> bool:
        return self.link.replica is not None


class World:
    """A model's workers and sessions; every method is one thing that may happen."""

    def __init__(self, table: StageTable, replicas: int, slots: int) -> None:
        settings = OrchestratorSettings(frontend_id="world")
        self._table = table
        self._plan = plan(table)
        self._boots = itertools.count()
        self.membership = Membership(table, _NoDiscovery(), settings)
        self.workers: list[Worker] = []
        self.sessions: list[Session] = []
        self.ends: list[Session] = []
        self.answers: dict[str, list[str]] = {}
        for stage, index in itertools.product(table.stages, range(replicas)):
            link = Link(
                stage.name,
                f"unix:{stage.name}-{index}",
                settings,
                self.membership,
                self.membership.pools[stage.name].work,
            )
            self.pools[stage.name].links[link.address] = link
            self.workers.append(Worker(link, slots, ""))
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
                    if isinstance(event, FinalOutput):
                        self.answers.setdefault(session.request.request_id, []).append(str(event.payload["trail"]))
        except TimeoutError:
            return

    # -- what may happen to workers

    def join(self, worker: Worker) -> None:
        if not worker.is_up:
            worker.boot = f"boot-{next(self._boots)}"
            worker.link.attached(self._info(worker))
            self.deliver()

    def die(self, worker: Worker) -> None:
        if worker.is_up:
            worker.work.clear()
            worker.held.clear()
            worker.link.detached("killed")
            self.deliver()

    def drain(self, worker: Worker) -> None:
        if worker.is_up:
            worker.link.received(wire.WorkerBatch(load=wire.Load(draining=True)))
            self.deliver()

    def advance(self, worker: Worker, index: int) -> None:
        """An attempt is accepted, or, if it has been, gives its outputs and finishes."""
        if not worker.work:
            return
        work = worker.work[index % len(worker.work)]
        if work.is_accepted:
            self._finish(worker, work)
        else:
            self._accept(worker, work)
        self.deliver()

    def answer(self, worker: Worker, index: int) -> None:
        """An attempt is accepted, gives its outputs inline and finishes, all in one message."""
        if not worker.work:
            return
        work = worker.work[index % len(worker.work)]
        if not work.is_accepted and self._read_inputs(worker, work):
            data = encode({"prompt": work.trail, "trail": work.trail}).to_bytes()
            outputs = [wire.Output(edge=edge, inline=data) for edge in work.start.outputs]
            self._send(worker, work, accepted=True, outputs=outputs, finished=wire.Finished())
            self.deliver()

    def fail(self, worker: Worker, index: int, code: str, retryable: bool) -> None:
        if worker.work:
            work = worker.work[index % len(worker.work)]
            self._send(worker, work, failed=wire.Failed(code=code, message=code, retryable=retryable))
            self.deliver()

    def deliver(self) -> None:
        """Moves what the orchestrator has sent to the workers until nothing is on its way."""
        is_moving = True
        while is_moving:
            is_moving = False
            for worker in self.workers:
                for message in worker.link.outbox.take().messages if worker.is_up else ():
                    is_moving = True
                    self._take(worker, message)

    # -- how a worker works

    def _take(self, worker: Worker, message: wire.FrontendMessage) -> None:
        match message.WhichOneof("body"):
            case "start":
                worker.work.append(Work(message.request_id, message.attempt, message.start))
                worker.most_at_once = max(worker.most_at_once, len(worker.work))
            case "cancel":
                for work in [work for work in worker.work if work.request_id == message.request_id]:
                    if work.attempt == message.attempt:
                        self._send(worker, work, failed=wire.Failed(code="cancelled", retryable=False))
            case "discard":
                for key in [key for key in worker.held if key.startswith(f"{message.request_id}/")]:
                    del worker.held[key]

    def _accept(self, worker: Worker, work: Work) -> None:
        work.is_accepted = True
        if self._read_inputs(worker, work):
            self._send(worker, work, accepted=True)

    def _read_inputs(self, worker: Worker, work: Work) -> bool:
        """False if the attempt has failed because an input is gone."""
        try:
            parts = [self._consume(one) for one in work.start.inputs]
        except TransferError as exc:
            self._send(worker, work, failed=wire.Failed(code=exc.code, message=exc.message, retryable=True))
            return False
        work.trail = f"({'+'.join(sorted(parts))}){worker.link.stage}"
        return True

    def _consume(self, one: wire.Input) -> str:
        if one.WhichOneof("source") == "inline":
            return str(decode(one.inline)["prompt"])
        owner = self._owner(one.handle)
        if owner is None:
            raise TransferError(one.edge, one.handle.request_id, "gone")
        return owner.held.pop(one.handle.key)

    def _finish(self, worker: Worker, work: Work) -> None:
        for edge in work.start.outputs:
            key = f"{work.request_id}/{work.attempt}/{edge}"
            worker.held[key] = work.trail
            handle = wire.Handle(
                key=key, edge=edge, request_id=work.request_id, owner=worker.link.address, boot_id=worker.boot
            )
            self._send(worker, work, outputs=[wire.Output(edge=edge, handle=handle)])
        self._send(worker, work, finished=wire.Finished())

    def _send(self, worker: Worker, work: Work, **body: object) -> None:
        if {"failed", "finished"} & body.keys():
            worker.work.remove(work)
        message = wire.WorkerMessage(request_id=work.request_id, attempt=work.attempt, **body)  # type: ignore[arg-type]
        worker.link.received(wire.WorkerBatch(messages=[message]))

    def _owner(self, handle: wire.Handle) -> Worker | None:
        for worker in self.workers:
            if worker.is_up and worker.boot == handle.boot_id and handle.key in worker.held:
                return worker
        return None

    async def _fetch(self, handle: wire.Handle, remaining_s: float) -> Payload:
        owner = self._owner(handle)
        if owner is None:
            raise TransferError(handle.edge, handle.request_id, "gone")
        return {"trail": owner.held[handle.key]}

    def _info(self, worker: Worker) -> wire.WorkerInfo:
        stage, edges = worker.link.stage, self._table.edges
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


def _contract(source: str, target: str) -> wire.EdgeContract:
    return wire.EdgeContract(edge=edge_name(source, target), contract_hash="h")

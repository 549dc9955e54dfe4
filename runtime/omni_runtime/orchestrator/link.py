"""What the frontend knows of one worker: what it said of itself, what runs there, and who wants to hear of it.

`connection.py` moves the bytes; this decides nothing but keeps the books.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from omni_contract.wire import stage_pb2 as wire
from omni_runtime.orchestrator.outbox import Outbox
from omni_runtime.orchestrator.routing import ReplicaInfo
from omni_runtime.orchestrator.settings import OrchestratorSettings
from omni_runtime.orchestrator.work import ANY, Backlog, Kind, WorkModel

logger = logging.getLogger(__name__)


class Listener(Protocol):
    """A session, as a link sees it."""

    def received(self, link: "Link", message: wire.WorkerMessage) -> None: ...

    def link_down(self, link: "Link", reason: str) -> None:
        """What the worker ran or held for the session is gone."""
        ...


class LinkObserver(Protocol):
    """Told whenever a link can take more or less than before."""

    def link_changed(self, link: "Link") -> None:
        """The worker came, went, fell asleep, woke, or started to drain."""
        ...

    def slot_freed(self, link: "Link") -> None: ...


class Link:
    """One worker. The connection calls `attached`, `received` and `detached`; sessions and pools use the rest.

    `replica` is None while there is no stream. A slot is taken by `start` and given back when the worker has sent the
    attempt's terminal message, which a cancelled attempt has, too.
    """

    def __init__(
        self, stage: str, address: str, settings: OrchestratorSettings, observer: LinkObserver, work: WorkModel
    ) -> None:
        self.stage = stage
        self.address = address
        self.replica: ReplicaInfo | None = None
        self.is_draining = False
        self._sleeps = False
        self.max_in_flight = 0
        self.last_chosen = 0
        self.is_paused = False
        self._settings = settings
        self._observer = observer
        self.end_stream: Callable[[], None] = lambda: None
        """Set by the connection while there is a stream."""
        self.outbox = self._new_outbox()
        self._listeners: dict[str, Listener] = {}
        self._backlog = Backlog(work)
        self._work = work
        self._reported_busy = 0
        self._refusal: str | None = None
        self.retired = asyncio.Event()

    @property
    def is_routable(self) -> bool:
        return self.replica is not None and not self.is_draining and not self.retired.is_set()

    @property
    def is_asleep(self) -> bool:
        """There, and takes work again once somebody wakes it."""
        return self.replica is not None and self._sleeps

    @property
    def locality(self) -> str:
        return self.replica.locality if self.replica else ""

    @property
    def in_flight(self) -> int:
        return len(self._backlog.open)

    @property
    def work_left_s(self) -> float:
        """Other frontends' requests count as typical ones, as far as the worker has reported them."""
        return self._backlog.work_s + max(0, self._reported_busy - self.in_flight) * self._work.predict_s(ANY)

    @property
    def slowness(self) -> float:
        return self._backlog.slowness

    @property
    def has_room(self) -> bool:
        return len(self._backlog.open) < self.max_in_flight and not self.is_paused

    def send_ahead(self, request_id: str, attempt: int, part: bytes) -> None:
        """A part of the input of the attempt that starts next."""
        self._message(request_id, attempt).part.data = part
        self.outbox.grew(len(part))

    def start(self, listener: Listener, request_id: str, attempt: int, kind: Kind) -> wire.Start:
        """The start message, for the session to fill in, which then tells the outbox how much that was."""
        self._listeners[request_id] = listener
        self._backlog.begin((request_id, attempt), kind, time.monotonic())
        return self._message(request_id, attempt).start

    def cancel(self, request_id: str, attempt: int) -> None:
        self._message(request_id, attempt).cancel.SetInParent()

    def taken(self, request_id: str, attempt: int, parts: int) -> None:
        """So many more parts of the final output have been read: the worker may send as many again."""
        self._message(request_id, attempt).taken.parts = parts

    def discard(self, request_id: str) -> None:
        """The request is over: the worker drops what it holds, and its late messages reach nobody."""
        if request_id in self._listeners:
            self._message(request_id).discard.SetInParent()
            self.forget(request_id)

    def forget(self, request_id: str) -> None:
        """Nothing runs and nothing is held there for the request any more."""
        self._listeners.pop(request_id, None)
        self._leave_if_idle()

    def retire(self) -> None:
        """The worker is no longer a member: no new work, and the stream ends with the last session that uses it."""
        self.retired.set()
        self._observer.link_changed(self)
        self._leave_if_idle()

    def attached(self, info: wire.WorkerInfo) -> None:
        self.outbox = self._new_outbox()
        self.replica = replica_info(self.address, info)
        self.max_in_flight = self.replica.max_in_flight
        self._sleeps = info.state == wire.WORKER_STATE_ASLEEP
        self.is_draining = self._sleeps or info.state == wire.WORKER_STATE_DRAINING
        self._refusal = None
        self._reported_busy, self.is_paused = 0, False
        logger.info("worker attached", extra={"stage": self.stage, "replica": info.replica, "address": self.address})
        self._observer.link_changed(self)

    def check_refusal(self, reason: str | None) -> None:
        """Says once why no stream came about, as far as it is about certificates: trying again will not help."""
        if self.replica is None and reason is not None and reason != self._refusal:
            self._refusal = reason
            logger.warning("no stream to worker: %s", reason, extra={"stage": self.stage, "address": self.address})

    def detached(self, reason: str, is_loss: bool = True) -> bool:
        """Tells every session that had something there; False if there was no stream."""
        self.end_stream = lambda: None
        lost, self.replica, self.max_in_flight = self.replica, None, 0
        listeners, self._listeners = self._listeners, {}
        self._backlog.clear()
        if lost is None:
            return False
        level, event = (logging.WARNING, "worker lost") if is_loss else (logging.DEBUG, "worker left")
        logger.log(level, "%s: %s", event, reason, extra={"stage": self.stage, "replica": lost.name})
        self._observer.link_changed(self)
        for listener in listeners.values():
            listener.link_down(self, reason)
        return True

    def received(self, batch: wire.WorkerBatch) -> None:
        freed, now_s = False, time.monotonic()
        for message in batch.messages:
            end = message.WhichOneof("end")
            if end is not None:
                attempt = (message.request_id, message.attempt)
                freed |= self._backlog.end(attempt, now_s, is_answered=end == "finished")
            listener = self._listeners.get(message.request_id)
            if listener is not None:
                listener.received(self, message)
        if batch.HasField("load"):
            freed |= self._note_load(batch.load)
        if freed:
            self._observer.slot_freed(self)

    def _note_load(self, load: wire.Load) -> bool:
        """True if the worker has room that it did not have."""
        self._reported_busy = load.running + load.waiting
        if (load.draining, load.asleep) != (self.is_draining, self._sleeps):
            self.is_draining, self._sleeps = load.draining, load.asleep
            self._observer.link_changed(self)
        was_paused, self.is_paused = self.is_paused, False
        return was_paused

    def _message(self, request_id: str, attempt: int = 0) -> wire.FrontendMessage:
        if self.outbox.is_full:
            logger.error("worker does not read", extra={"stage": self.stage, "address": self.address})
            self.end_stream()
        return self.outbox.message(request_id, attempt)

    def _leave_if_idle(self) -> None:
        if self.retired.is_set() and not self._listeners:
            self.end_stream()

    def _new_outbox(self) -> Outbox:
        settings = self._settings
        return Outbox(settings.frontend_id, settings.outbox_messages, settings.batch_bytes)


def replica_info(address: str, info: wire.WorkerInfo) -> ReplicaInfo:
    return ReplicaInfo(
        address=address,
        name=info.replica,
        boot_id=info.boot_id,
        stage=info.stage,
        revision=info.revision,
        max_in_flight=max(1, info.max_in_flight),
        inputs=_contracts(info.inputs),
        outputs=_contracts(info.outputs),
        locality=info.locality,
    )


def _contracts(edges: Iterable[wire.EdgeContract]) -> Mapping[str, str]:
    return {edge.edge: edge.contract_hash for edge in edges}

"""The frontend's end of Attach: one multiplexed stream to one worker, kept up for as long as the worker is a member."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Protocol

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.names import HEALTH_READY
from omni_contract.wire.stage_pb2_grpc import StageWorkerStub
from omni_runtime.orchestrator.outbox import Outbox, OutboxFullError
from omni_runtime.orchestrator.routing import ReplicaInfo
from omni_runtime.orchestrator.settings import OrchestratorSettings

logger = logging.getLogger(__name__)

TERMINAL_BODIES = frozenset({"finished", "failed"})
SERVICE_TIME_WEIGHT = 0.2


class Listener(Protocol):
    """A session, as a link sees it."""

    def received(self, link: "Link", message: wire.WorkerMessage) -> None: ...

    def link_down(self, link: "Link", reason: str) -> None:
        """What the worker ran or held for the session is gone."""
        ...


class LinkObserver(Protocol):
    """Told whenever a link can take more or less than before."""

    def link_changed(self, link: "Link") -> None:
        """The worker came, went, or started to drain."""
        ...

    def slot_freed(self, link: "Link") -> None: ...


class WrongWorkerError(Exception):
    """Another stage's worker answers at the address."""


class Link:
    """One worker: what it said of itself, what runs there, and the stream to it.

    `replica` is None while there is no stream. A slot is taken by `start` and given back when the worker has sent the
    attempt's terminal message, which a cancelled attempt has, too.
    """

    def __init__(self, stage: str, address: str, settings: OrchestratorSettings, observer: LinkObserver) -> None:
        self.stage = stage
        self.address = address
        self.replica: ReplicaInfo | None = None
        self.is_draining = False
        self.service_s = 0.0
        self.last_chosen = 0
        self.refused_until_s = 0.0
        self._settings = settings
        self._observer = observer
        self._outbox = self._new_outbox()
        self._listeners: dict[str, Listener] = {}
        self._started_at_s: dict[tuple[str, int], float] = {}
        self._reported_busy = 0
        self._retired = asyncio.Event()
        self._patience: asyncio.Timeout | None = None

    @property
    def is_routable(self) -> bool:
        return self.replica is not None and not self.is_draining and not self._retired.is_set()

    @property
    def max_in_flight(self) -> int:
        return self.replica.max_in_flight if self.replica else 0

    @property
    def in_flight(self) -> int:
        return len(self._started_at_s)

    @property
    def busy(self) -> int:
        """Other frontends' requests count, too, as far as the worker has reported them."""
        return max(self.in_flight, self._reported_busy)

    @property
    def has_room(self) -> bool:
        return self.in_flight < self.max_in_flight and _now_s() >= self.refused_until_s

    def start(self, listener: Listener, request_id: str, attempt: int, start: wire.Start) -> None:
        self._listeners[request_id] = listener
        self._started_at_s[request_id, attempt] = _now_s()
        self._send(wire.FrontendMessage(request_id=request_id, attempt=attempt, start=start))

    def cancel(self, request_id: str, attempt: int) -> None:
        self._send(wire.FrontendMessage(request_id=request_id, attempt=attempt, cancel=wire.Cancel()))

    def discard(self, request_id: str) -> None:
        """The request is over: the worker drops what it holds, and its late messages reach nobody."""
        if self._listeners.pop(request_id, None):
            self._send(wire.FrontendMessage(request_id=request_id, discard=wire.Discard()))
            self._leave_if_idle()

    def retire(self) -> None:
        """The worker is no longer a member: no new work, and the stream ends with the last session that uses it."""
        self._retired.set()
        self._observer.link_changed(self)
        self._leave_if_idle()

    async def run(self) -> None:
        """Keeps the stream up until the link is retired and the worker has gone."""
        delay_s = self._settings.reconnect_first_s
        while not self._retired.is_set():
            was_up = await self._connect_once()
            delay_s = self._settings.reconnect_first_s if was_up else min(2 * delay_s, self._settings.reconnect_most_s)
            await _wait_for(self._retired, delay_s)

    async def _connect_once(self) -> bool:
        """True if there was a stream; it has ended when this returns."""
        reason = "the worker closed the stream"
        try:
            async with (
                grpc.aio.insecure_channel(self.address, _channel_options(self._settings)) as channel,
                asyncio.timeout(None) as self._patience,
            ):
                await self._attach(channel)
        except (grpc.aio.AioRpcError, WrongWorkerError, TimeoutError) as exc:
            reason = exc.details() or exc.code().name if isinstance(exc, grpc.aio.AioRpcError) else str(exc)
        except asyncio.CancelledError:
            reason = "this frontend ends"
            raise
        finally:
            self._patience = None
            was_up = self._down(reason)
        return was_up

    async def _attach(self, channel: grpc.aio.Channel) -> None:
        stub = StageWorkerStub(channel)
        info = await self._describe(stub, channel)
        self._outbox = self._new_outbox()
        call = stub.Attach(self._outbox.batches())
        self._up(info)
        async for batch in call:
            self._receive(batch)

    async def _describe(self, stub: StageWorkerStub, channel: grpc.aio.Channel) -> wire.WorkerInfo:
        timeout_s = self._settings.connect_timeout_s
        info: wire.WorkerInfo = await stub.Describe(wire.DescribeRequest(), timeout=timeout_s)
        if info.state == wire.WORKER_STATE_LOADING:
            await _until_serving(channel)
            info = await stub.Describe(wire.DescribeRequest(), timeout=timeout_s)
        if info.stage != self.stage:
            raise WrongWorkerError(f'{self.address} serves stage "{info.stage}", not "{self.stage}"')
        return info

    def _up(self, info: wire.WorkerInfo) -> None:
        self.replica = replica_info(self.address, info)
        self.is_draining = info.state == wire.WORKER_STATE_DRAINING
        self._reported_busy, self.refused_until_s = 0, 0.0
        logger.info("worker attached", extra={"stage": self.stage, "replica": info.replica, "address": self.address})
        self._observer.link_changed(self)

    def _down(self, reason: str) -> bool:
        """Tells every session that had something there; False if there was no stream."""
        lost, self.replica = self.replica, None
        listeners, self._listeners = self._listeners, {}
        self._started_at_s.clear()
        if lost is None:
            return False
        logger.warning("worker lost: %s", reason, extra={"stage": self.stage, "replica": lost.name})
        self._observer.link_changed(self)
        for listener in listeners.values():
            listener.link_down(self, reason)
        return True

    def _receive(self, batch: wire.WorkerBatch) -> None:
        freed = False
        for message in batch.messages:
            freed |= self._note_terminal(message)
            listener = self._listeners.get(message.request_id)
            if listener is not None:
                listener.received(self, message)
        if batch.HasField("load"):
            freed |= self._note_load(batch.load)
        if freed:
            self._observer.slot_freed(self)

    def _note_terminal(self, message: wire.WorkerMessage) -> bool:
        if message.WhichOneof("body") not in TERMINAL_BODIES:
            return False
        started_at_s = self._started_at_s.pop((message.request_id, message.attempt), None)
        if started_at_s is not None and message.HasField("finished"):
            self._learn(_now_s() - started_at_s)
        return started_at_s is not None

    def _learn(self, took_s: float) -> None:
        weight = SERVICE_TIME_WEIGHT if self.service_s else 1.0
        self.service_s += weight * (took_s - self.service_s)

    def _note_load(self, load: wire.Load) -> bool:
        """True if the worker has room that it did not have."""
        self._reported_busy = load.running + load.waiting
        if load.draining != self.is_draining:
            self.is_draining = load.draining
            self._observer.link_changed(self)
        had_refused, self.refused_until_s = self.refused_until_s > 0, 0.0
        return had_refused

    def _send(self, message: wire.FrontendMessage) -> None:
        try:
            self._outbox.put(message)
        except OutboxFullError:
            logger.exception("worker does not read", extra={"stage": self.stage, "address": self.address})
            self._end_stream()

    def _leave_if_idle(self) -> None:
        if self._retired.is_set() and not self._listeners:
            self._end_stream()

    def _end_stream(self) -> None:
        if self._patience is not None:
            self._patience.reschedule(_now_s())

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
    )


def _contracts(edges: Iterable[wire.EdgeContract]) -> Mapping[str, str]:
    return {edge.edge: edge.contract_hash for edge in edges}


async def _until_serving(channel: grpc.aio.Channel) -> None:
    """Waits as long as the worker loads; the watch ends with an error if the worker dies."""
    request = health_pb2.HealthCheckRequest(service=HEALTH_READY)
    async for reply in health_pb2_grpc.HealthStub(channel).Watch(request):
        if reply.status == health_pb2.HealthCheckResponse.SERVING:
            return


async def _wait_for(event: asyncio.Event, most_s: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), most_s)
    except TimeoutError:
        return


def _channel_options(settings: OrchestratorSettings) -> list[tuple[str, int]]:
    """A channel of its own per try, so that gRPC's back-off does not add to ours."""
    return [
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.keepalive_time_ms", int(settings.keepalive_s * 1000)),
        ("grpc.keepalive_timeout_ms", 2000),
        # Without it a ping that a stopped worker does not answer is waited for 60 s, whatever the keepalive says.
        ("grpc.http2.ping_timeout_ms", 2000),
        ("grpc.max_receive_message_length", 64 << 20),
        ("grpc.enable_http_proxy", 0),
    ]


def _now_s() -> float:
    return asyncio.get_running_loop().time()

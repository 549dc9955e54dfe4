"""What all sessions of one worker share: the engine, its connectors, its capacity, its state."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from omni_contract.wire import names
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_file import StageFile
from omni_contract.wire.stage_pb2 import Load
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.protocol import Connector, TakesInline
from omni_runtime.engines.protocol import Engine, EngineDiedError, HasWeights
from omni_runtime.tracing.spans import UNTRACED, Tracing
from omni_runtime.worker.capacity import Capacity
from omni_runtime.worker.edge_schemas import EdgeSchemas
from omni_runtime.worker.metrics import WorkerMetrics
from omni_runtime.worker.states import SLEEPING, Event, State, next_state

logger = logging.getLogger(__name__)

LOAD_INTERVAL_S = 0.05
"""A changed load reaches frontends that have no messages of their own within this time."""


@dataclass(frozen=True)
class Carrier:
    """`inline` is the same connector, if small payloads need not be put."""

    connector: Connector
    inline: TakesInline | None


class Stage:
    """One replica of a stage.

    Listeners are called when the state changes, and some time after the load has changed.
    """

    def __init__(self, file: StageFile, engine: Engine, connectors: ConnectorSet, tracing: Tracing = UNTRACED) -> None:
        self.file = file
        self.tracing = tracing
        self.engine = engine
        self.connectors = connectors
        self.state = State.LOADING
        self.capacity = Capacity(file.max_in_flight, self._load_changed)
        self.inputs = {end.edge: end for end in file.inputs}
        self.outputs = {end.edge: end for end in file.outputs}
        self.schemas = EdgeSchemas(file)
        self._carriers: dict[str, Carrier] = {}
        self.died: asyncio.Future[EngineDiedError] = asyncio.get_running_loop().create_future()
        self.metrics = WorkerMetrics((*self.inputs, *self.outputs))
        self.load_s = 0.0
        """How long the engine took to load."""
        self._listeners: set[Callable[[], None]] = set()
        self._load_timer: asyncio.TimerHandle | None = None
        self._expose()

    def carrier(self, edge: str) -> Carrier:
        """What carries an edge that leaves this stage."""
        if edge not in self._carriers:
            end = self.outputs.get(edge)
            connector = self.connectors.connector(end.connector if end else "auto")
            self._carriers[edge] = Carrier(connector, connector if isinstance(connector, TakesInline) else None)
        return self._carriers[edge]

    def listen(self, listener: Callable[[], None]) -> None:
        self._listeners.add(listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        self._listeners.discard(listener)

    def see(self, event: Event) -> None:
        self.become(next_state(self.state, event))

    def become(self, state: State) -> None:
        self.state = state
        self._tell()

    def check_ready(self) -> None:
        if self.state is not State.READY:
            raise OmniError(ErrorCode.STAGE_UNAVAILABLE, f'this replica of stage "{self.file.stage}" is {self.state}')

    def engine_died(self, error: EngineDiedError) -> None:
        """The process ends; requests that run elsewhere are not touched."""
        if not self.died.done():
            self.died.set_result(error)

    def load(self) -> Load:
        return Load(
            running=self.capacity.running,
            waiting=self.capacity.waiting,
            draining=self.state is State.DRAINING or self.state in SLEEPING,
            asleep=self.state in SLEEPING,
        )

    async def wait_unneeded(self) -> None:
        """Returns once nothing runs here and none of our payloads is still wanted."""
        await self.capacity.wait_idle()
        await self.connectors.wait_empty()

    def _load_changed(self) -> None:
        if self._load_timer is None and self._listeners:
            self._load_timer = asyncio.get_running_loop().call_later(LOAD_INTERVAL_S, self._tell_load)

    def _tell_load(self) -> None:
        self._load_timer = None
        self._tell()

    def _tell(self) -> None:
        for listener in list(self._listeners):
            listener()

    def _expose(self) -> None:
        gauge, capacity, connectors = self.metrics.gauge, self.capacity, self.connectors
        gauge(names.WORKER_RUNNING, "Requests that run.", lambda: capacity.running)
        gauge(names.WORKER_WAITING, "Requests that wait for a slot.", lambda: capacity.waiting)
        gauge(names.WORKER_PAYLOADS, "Payloads held for others.", lambda: connectors.census().payloads)
        gauge(names.WORKER_PAYLOAD_BYTES, "Bytes held for others.", lambda: connectors.census().size_bytes)
        gauge(names.WORKER_HEARTBEAT_AGE_SECONDS, "Since the engine's last turn.", self.engine.heartbeat_age_s)
        gauge(names.WORKER_LOAD_SECONDS, "What loading took.", lambda: self.load_s)
        engine = self.engine
        if isinstance(engine, HasWeights):
            gauge(names.WORKER_WEIGHTS_BYTES, "Weights on the device.", lambda: engine.weights_bytes)
        gauge(names.WORKER_ASLEEP, "1 until it is woken.", lambda: float(self.state in SLEEPING))
        gauge(names.WORKER_READY, "1 while new work is taken.", lambda: float(self.state is State.READY))

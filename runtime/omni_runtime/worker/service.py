"""The worker's gRPC services: StageWorker (Describe, Attach, Fetch, Release) and Control (Drain, Stats)."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import grpc

from omni_contract.wire.stage_file import EdgeEnd
from omni_contract.wire.stage_pb2 import (
    WORKER_STATE_DRAINING,
    WORKER_STATE_LOADING,
    WORKER_STATE_READY,
    DescribeRequest,
    DrainReply,
    DrainRequest,
    EdgeContract,
    FrontendBatch,
    StatsRequest,
    WorkerInfo,
    WorkerStats,
)
from omni_contract.wire.stage_pb2_grpc import ControlServicer
from omni_runtime.connectors.serving import PayloadServicer
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.worker.session import FrontendSession
from omni_runtime.worker.stage import Stage, State

WIRE_STATES = {
    State.LOADING: WORKER_STATE_LOADING,
    State.READY: WORKER_STATE_READY,
    State.DRAINING: WORKER_STATE_DRAINING,
}


class StageWorkerService(PayloadServicer):
    """Fetch and Release come from the data plane; `replica` and `locality` are what this process is called."""

    def __init__(self, stage: Stage, store: PayloadStore, boot_id: str, replica: str, locality: str) -> None:
        super().__init__(store, boot_id)
        self._stage = stage
        self._replica = replica
        self._locality = locality
        self._sessions: set[FrontendSession] = set()

    @property
    def frontends(self) -> int:
        return len(self._sessions)

    async def Describe(self, request: DescribeRequest, context: grpc.aio.ServicerContext) -> WorkerInfo:
        file = self._stage.file
        return WorkerInfo(
            model=file.model,
            stage=file.stage,
            revision=file.revision,
            boot_id=self._boot_id,
            replica=self._replica,
            max_in_flight=file.max_in_flight,
            inputs=_contracts(file.inputs),
            outputs=_contracts(file.outputs),
            connectors=self._stage.connectors.names,
            state=WIRE_STATES[self._stage.state],
            locality=self._locality,
        )

    async def Attach(self, batches: AsyncIterator[FrontendBatch], context: grpc.aio.ServicerContext) -> None:
        session = FrontendSession(self._stage)
        self._sessions.add(session)
        try:
            await session.serve(batches, context.write)
        finally:
            self._sessions.remove(session)

    def close_sessions(self) -> None:
        """Each stream ends once its last messages are sent."""
        for session in self._sessions:
            session.close()


class ControlService(ControlServicer):
    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def Drain(self, request: DrainRequest, context: grpc.aio.ServicerContext) -> DrainReply:
        self._stage.become(State.DRAINING)
        try:
            async with asyncio.timeout(request.timeout_ms / 1000):
                await self._stage.wait_unneeded()
        except TimeoutError:
            pass
        return DrainReply(left_running=self._stage.capacity.running + self._stage.capacity.waiting)

    async def Stats(self, request: StatsRequest, context: grpc.aio.ServicerContext) -> WorkerStats:
        census = self._stage.connectors.census()
        outcomes = self._stage.metrics.outcomes()
        return WorkerStats(
            running=self._stage.capacity.running,
            waiting=self._stage.capacity.waiting,
            payloads=census.payloads,
            payload_bytes=census.size_bytes,
            requests_total=sum(outcomes.values()),
            cancelled_total=outcomes.get("cancelled", 0),
            failed_total=sum(outcomes.values()) - outcomes.get("cancelled", 0) - outcomes.get("finished", 0),
        )


def _contracts(ends: Iterable[EdgeEnd]) -> list[EdgeContract]:
    return [EdgeContract(edge=end.edge, contract_hash=end.contract_hash) for end in ends]

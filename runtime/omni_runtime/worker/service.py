"""The worker's `StageWorker` service: Describe, Attach, Fetch, Release."""

from collections.abc import AsyncIterator, Iterable

import grpc

from omni_contract.wire.stage_file import EdgeEnd
from omni_contract.wire.stage_pb2 import (
    DescribeRequest,
    EdgeContract,
    FrontendBatch,
    WorkerInfo,
)
from omni_runtime.connectors.serving import PayloadServicer
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.worker.control_service import WIRE_STATES
from omni_runtime.worker.session import FrontendSession
from omni_runtime.worker.stage import Stage


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


def _contracts(ends: Iterable[EdgeEnd]) -> list[EdgeContract]:
    return [EdgeContract(edge=end.edge, contract_hash=end.contract_hash) for end in ends]

"""The worker's `StageWorker` service: Describe, AttachPipe, Fetch, Release."""

from collections.abc import AsyncIterator, Iterable

import grpc

from omni_contract.wire.stage_file import EdgeEnd
from omni_contract.wire.stage_pb2 import (
    AttachPipeRequest,
    DescribeRequest,
    EdgeContract,
    PipeOffer,
    WorkerBatch,
    WorkerInfo,
)
from omni_runtime.connectors.serving import PayloadServicer
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.transport.pipe import Pipe
from omni_runtime.worker.control_service import WIRE_STATES
from omni_runtime.worker.pipes import PipeServer
from omni_runtime.worker.session import FrontendSession
from omni_runtime.worker.stage import Stage

FLUSH_S = 2.0
"""How long a frontend may take to read the last messages."""


class StageWorkerService(PayloadServicer):
    """Fetch and Release come from the data plane; `replica` and `locality` are what this process is called."""

    def __init__(self, stage: Stage, store: PayloadStore, boot_id: str, replica: str, locality: str) -> None:
        super().__init__(store, boot_id)
        self.pipes = PipeServer()
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

    async def AttachPipe(
        self, request: AttachPipeRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[PipeOffer]:
        if not self.pipes.is_open:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "no pipes are taken yet")
        with self.pipes.offer() as offer:
            yield offer.reply
            try:
                pipe = await offer.taken()
            except TimeoutError:
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the pipe was offered and not taken")
        try:
            await self._serve(pipe)
            await pipe.close(FLUSH_S)
        finally:
            pipe.break_off("the call has ended")

    async def _serve(self, pipe: Pipe) -> None:
        async def write(batch: WorkerBatch) -> None:
            await pipe.write(batch.SerializeToString())

        session = FrontendSession(self._stage)
        self._sessions.add(session)
        try:
            await session.serve(pipe, write)
        finally:
            self._sessions.remove(session)

    def close_sessions(self) -> None:
        """Each stream ends once its last messages are sent."""
        for session in self._sessions:
            session.close()


def _contracts(ends: Iterable[EdgeEnd]) -> list[EdgeContract]:
    return [EdgeContract(edge=end.edge, contract_hash=end.contract_hash) for end in ends]

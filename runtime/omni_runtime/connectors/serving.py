"""The owner's side of the data plane: Fetch, Read and Release over what this process holds."""

import asyncio
from collections.abc import AsyncIterator

import grpc

from omni_contract.wire.stage_pb2 import (
    ChunkBatch,
    FetchRequest,
    Handle,
    PayloadSlice,
    ReadBatch,
    ReleaseReply,
    ReleaseRequest,
)
from omni_contract.wire.stage_pb2_grpc import StageWorkerServicer
from omni_runtime.connectors.budget import PayloadGoneError
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.connectors.stream import ChunkStream
from omni_runtime.connectors.stream_sender import StreamSender

SLICE_BYTES = 2**20


class PayloadServicer(StageWorkerServicer):
    """Hands the payloads of one store to their consumers; handles of another boot are gone."""

    def __init__(self, store: PayloadStore, boot_id: str) -> None:
        self._store = store
        self._boot_id = boot_id

    async def Fetch(self, request: FetchRequest, context: grpc.aio.ServicerContext) -> AsyncIterator[PayloadSlice]:
        try:
            self._check_boot(request.handle)
            for piece in self._store.object(request.handle.key).slices(SLICE_BYTES):
                yield PayloadSlice(data=bytes(piece))
        except PayloadGoneError as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, str(error))

    async def Read(
        self, request: AsyncIterator[ReadBatch], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[ChunkBatch]:
        sender = StreamSender(self._stream)
        listening = asyncio.create_task(sender.listen(request))
        try:
            async for batch in sender.batches():
                yield batch
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def Release(self, request: ReleaseRequest, context: grpc.aio.ServicerContext) -> ReleaseReply:
        for handle in request.handles:
            if handle.boot_id == self._boot_id:
                self._store.drop(handle.key)
        return ReleaseReply()

    def _stream(self, handle: Handle) -> ChunkStream:
        self._check_boot(handle)
        return self._store.stream(handle.key)

    def _check_boot(self, handle: Handle) -> None:
        if handle.boot_id != self._boot_id:
            raise PayloadGoneError("the payload's owner has restarted since")

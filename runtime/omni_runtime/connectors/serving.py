"""The owner's side of the data plane: Fetch and Release over what this process holds."""

from collections.abc import AsyncIterator, Iterator

import grpc

from omni_contract.wire.codec import EncodedPayload
from omni_contract.wire.stage_pb2 import (
    HANDLE_KIND_STREAM,
    FetchRequest,
    Handle,
    PayloadSlice,
    ReleaseReply,
    ReleaseRequest,
)
from omni_contract.wire.stage_pb2_grpc import StageWorkerServicer
from omni_runtime.connectors.budget import PayloadGoneError
from omni_runtime.connectors.store import HeldObject, PayloadStore
from omni_runtime.connectors.stream import BATCH_BYTES, Batch

SLICE_BYTES = BATCH_BYTES


class PayloadServicer(StageWorkerServicer):
    """Streams payloads of one store to their consumers; handles of another boot are gone."""

    def __init__(self, store: PayloadStore, boot_id: str) -> None:
        self._store = store
        self._boot_id = boot_id

    async def Fetch(self, request: FetchRequest, context: grpc.aio.ServicerContext) -> AsyncIterator[PayloadSlice]:
        try:
            async for piece in self._slices(request):
                yield piece
        except PayloadGoneError as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, str(error))

    async def Release(self, request: ReleaseRequest, context: grpc.aio.ServicerContext) -> ReleaseReply:
        for handle in request.handles:
            if handle.boot_id == self._boot_id:
                self._store.drop(handle.key)
        return ReleaseReply()

    async def _slices(self, request: FetchRequest) -> AsyncIterator[PayloadSlice]:
        handle = request.handle
        self._check_boot(handle)
        if handle.kind != HANDLE_KIND_STREAM:
            for piece in object_slices(self._store.object(handle.key)):
                yield piece
            return
        slices = together if request.most_chunks else one_by_one
        async for batch in self._store.stream(handle.key).read(request.from_chunk, request.most_chunks):
            for piece in slices(batch):
                yield piece

    def _check_boot(self, handle: Handle) -> None:
        if handle.boot_id != self._boot_id:
            raise PayloadGoneError("the payload's owner has restarted since")


def object_slices(payload: HeldObject) -> Iterator[PayloadSlice]:
    for piece in payload.slices(SLICE_BYTES):
        yield PayloadSlice(data=bytes(piece))


def together(batch: Batch) -> Iterator[PayloadSlice]:
    """In one message, unless it is one large chunk."""
    if batch.size_bytes > SLICE_BYTES:
        yield from one_by_one(batch)
    else:
        yield PayloadSlice(chunks=[chunk.to_bytes() for chunk in batch.chunks], end_of_stream=batch.is_last)


def one_by_one(batch: Batch) -> Iterator[PayloadSlice]:
    for chunk in batch.chunks:
        yield from chunk_slices(chunk)
    if batch.is_last:
        yield PayloadSlice(end_of_stream=True)


def chunk_slices(chunk: EncodedPayload) -> Iterator[PayloadSlice]:
    """The last slice of a chunk says so."""
    pending: PayloadSlice | None = None
    for piece in chunk.slices(SLICE_BYTES):
        if pending is not None:
            yield pending
        pending = PayloadSlice(data=bytes(piece))
    if pending is not None:
        pending.end_of_chunk = True
        yield pending

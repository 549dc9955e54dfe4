"""`grpc`: the owner keeps the payload, the consumer streams it from the owner's worker. The default between pods."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import grpc

from omni_contract.wire.codec import CodecError, EncodedPayload, allocate, decode, encode
from omni_contract.wire.errors import StreamDroppedError, TransferError
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import (
    HANDLE_KIND_OBJECT,
    HANDLE_KIND_STREAM,
    FetchRequest,
    Handle,
    HandleKind,
    PayloadSlice,
)
from omni_contract.wire.stage_pb2_grpc import StageWorkerStub
from omni_runtime.connectors.arrivals import Arrivals, LargeChunkError, StreamGoneError
from omni_runtime.connectors.budget import PayloadGoneError, StoreFullError
from omni_runtime.connectors.channels import ChannelPool
from omni_runtime.connectors.counters import ConnectorHealth, Counters
from omni_runtime.connectors.protocol import Census, ConnectorContext
from omni_runtime.connectors.releases import Releases
from omni_runtime.connectors.stream_reader import BrokenOffError, StreamReader


class GrpcConnector:
    """Both sides of the connector: as owner it fills the store that Fetch and Read serve, as consumer it calls them."""

    def __init__(self, context: ConnectorContext) -> None:
        self._owner = context.owner
        self._boot_id = context.boot_id
        self._store = context.store
        self._transport = context.transport
        self._channels = ChannelPool(context.transport)
        self._releases = Releases(self._channels)
        self.counters = Counters()
        self._streams = StreamReader(self._channels, self.counters, context.store.limit_bytes)

    async def open(self) -> None:
        pass

    async def put(self, request_id: str, edge: str, payload: Payload, remaining_s: float) -> Handle:
        return self.hold(request_id, edge, encode(payload), remaining_s)

    def hold(self, request_id: str, edge: str, encoded: EncodedPayload, remaining_s: float) -> Handle:
        try:
            key = self._store.hold(encoded, remaining_s)
        except StoreFullError as error:
            raise TransferError(edge, request_id, str(error)) from error
        handle = self._handle(key, request_id, edge, remaining_s, HANDLE_KIND_OBJECT)
        handle.size_bytes = encoded.size_bytes
        self.counters.put(encoded.size_bytes)
        return handle

    async def get(self, handle: Handle, remaining_s: float) -> Payload:
        with self.counters.failures():
            payload = await self._get(handle, remaining_s)
        self.counters.got(handle.size_bytes)
        return payload

    async def _get(self, handle: Handle, remaining_s: float) -> Payload:
        block = self._block(handle)
        filled = 0
        async for piece in self._fetch(FetchRequest(handle=handle), remaining_s):
            end = filled + len(piece.data)
            if end > block.nbytes:
                raise _transfer_error(handle, f"more than the announced {block.nbytes:,} bytes arrived")
            block[filled:end] = piece.data
            filled = end
        if filled != block.nbytes:
            raise _transfer_error(handle, f"{filled:,} of {block.nbytes:,} bytes arrived")
        return _decoded(handle, block)

    async def open_stream(self, request_id: str, edge: str, remaining_s: float) -> Handle:
        key = self._store.open_stream(remaining_s)
        return self._handle(key, request_id, edge, remaining_s, HANDLE_KIND_STREAM)

    async def append(self, handle: Handle, chunk: Payload) -> None:
        try:
            await self._store.stream(handle.key).append(encode(chunk))
        except PayloadGoneError as error:
            raise StreamDroppedError(handle.edge, handle.request_id, str(error)) from error
        except StoreFullError as error:
            raise _transfer_error(handle, str(error)) from error

    async def end_stream(self, handle: Handle) -> None:
        try:
            self._store.stream(handle.key).end()
        except PayloadGoneError as error:
            raise StreamDroppedError(handle.edge, handle.request_id, str(error)) from error

    async def chunks(self, handle: Handle, remaining_s: float) -> AsyncIterator[Payload]:
        _check_time(handle, remaining_s)
        try:
            async with self._streams.reading(handle) as arrivals:
                with _failed_later(arrivals, remaining_s):
                    async for block in arrivals:
                        yield _decoded(handle, block)
        except grpc.aio.AioRpcError as error:
            raise self._failure(handle, error, remaining_s) from error
        except TimeoutError as error:
            raise _transfer_error(handle, f"owner {handle.owner} did not deliver within {remaining_s:.1f} s") from error
        except StreamGoneError as error:
            raise _transfer_error(handle, f"owner {handle.owner} answers: {error}") from error
        except (BrokenOffError, LargeChunkError) as error:
            raise _transfer_error(handle, str(error)) from error

    async def release(self, handle: Handle) -> None:
        self.release_soon(handle)

    def release_soon(self, handle: Handle) -> None:
        """An own payload at once, another's with the next call to its owner."""
        if handle.boot_id == self._boot_id:
            self._store.drop(handle.key)
        else:
            self._releases.add(handle)

    def census(self) -> Census:
        return Census(payloads=len(self._store), size_bytes=self._store.size_bytes)

    def health(self) -> ConnectorHealth:
        """Trouble is the other end's, and told by its errors."""
        return ConnectorHealth("", self.counters)

    async def wait_empty(self) -> None:
        await self._store.wait_empty()

    async def close(self) -> None:
        await self._streams.close()
        await self._releases.close()
        await self._channels.close()
        self._store.close()

    def _handle(self, key: str, request_id: str, edge: str, remaining_s: float, kind: HandleKind) -> Handle:
        return Handle(
            key=key,
            edge=edge,
            request_id=request_id,
            connector="grpc",
            owner=self._owner,
            owner_stage=self._transport.component,
            boot_id=self._boot_id,
            remaining_ms=int(remaining_s * 1000),
            kind=kind,
        )

    def _block(self, handle: Handle) -> memoryview:
        """A handle comes from the network: its size must not make us allocate without bound."""
        if handle.size_bytes > self._store.limit_bytes:
            raise _transfer_error(
                handle, f"{handle.size_bytes:,} bytes are above this process's limit of {self._store.limit_bytes:,}"
            )
        return allocate(handle.size_bytes)

    async def _fetch(self, request: FetchRequest, remaining_s: float) -> AsyncIterator[PayloadSlice]:
        handle = request.handle
        _check_time(handle, remaining_s)
        try:
            async with self._channels.channel(handle.owner, handle.owner_stage) as channel:
                async for piece in StageWorkerStub(channel).Fetch(request, timeout=remaining_s):
                    yield piece
        except grpc.aio.AioRpcError as error:
            raise self._failure(handle, error, remaining_s) from error

    def _failure(self, handle: Handle, error: grpc.aio.AioRpcError, remaining_s: float) -> TransferError:
        refusal = self._transport.explain(error, handle.owner_stage)
        reason = f"owner {handle.owner}: {refusal}" if refusal else _reason(handle, error, remaining_s)
        return _transfer_error(handle, reason)


def _check_time(handle: Handle, remaining_s: float) -> None:
    if remaining_s <= 0:
        raise _transfer_error(handle, "the deadline had passed before the transfer began")


@contextmanager
def _failed_later(arrivals: Arrivals, remaining_s: float) -> Iterator[None]:
    """A stream that still comes after so long has failed."""
    timer = asyncio.get_running_loop().call_later(remaining_s, arrivals.fail, TimeoutError())
    try:
        yield
    finally:
        timer.cancel()


def _transfer_error(handle: Handle, reason: str) -> TransferError:
    return TransferError(handle.edge, handle.request_id, reason)


def _reason(handle: Handle, error: grpc.aio.AioRpcError, remaining_s: float) -> str:
    match error.code():
        case grpc.StatusCode.UNAVAILABLE:
            return f"owner {handle.owner} is gone or cannot be reached"
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"owner {handle.owner} did not deliver within {remaining_s:.1f} s"
        case grpc.StatusCode.NOT_FOUND:
            return f"owner {handle.owner} answers: {error.details()}"
        case _:
            return f"owner {handle.owner} failed: {error.code().name} {error.details()}"


def _decoded(handle: Handle, block: memoryview) -> Payload:
    try:
        return decode(block)
    except CodecError as error:
        raise _transfer_error(handle, f"the payload cannot be read: {error}") from error

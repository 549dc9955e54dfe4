"""The part that connectors share whose payloads lie elsewhere than in the worker's own store.

The owner's store keeps each payload's time and takes its release. A stream sends its chunks' handles, in order, over
gRPC; small chunks travel there themselves.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator

from omni_contract.wire.codec import EncodedPayload, encode
from omni_contract.wire.errors import StreamDroppedError, TransferError
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import HANDLE_KIND_OBJECT, HANDLE_KIND_STREAM, Handle, HandleKind
from omni_runtime.connectors.budget import PayloadGoneError, StoreFullError
from omni_runtime.connectors.inline import INLINE_LIMIT_BYTES
from omni_runtime.connectors.protocol import Census, Connector, ConnectorContext
from omni_runtime.connectors.store import PayloadStore, WhenDropped
from omni_runtime.connectors.stream import BUFFER_CHUNKS


class ElsewhereConnector(ABC):
    """Base of connectors that only know how to put and get objects."""

    largest_inline_bytes = INLINE_LIMIT_BYTES
    """Of a chunk that travels in the stream itself."""

    def __init__(self, context: ConnectorContext) -> None:
        self._context = context
        self._store = context.store
        self._windows: dict[str, Window] = {}

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def put(self, request_id: str, edge: str, payload: Payload, remaining_s: float) -> Handle: ...

    @abstractmethod
    async def get(self, handle: Handle, remaining_s: float) -> Payload: ...

    @abstractmethod
    async def close(self) -> None: ...

    async def open_stream(self, request_id: str, edge: str, remaining_s: float) -> Handle:
        key = self._store.open_stream(remaining_s)
        self._windows[key] = Window(self._store, _now() + remaining_s)
        self._store.when_dropped(key, lambda: self._windows.pop(key).close())
        return self._handle(key, request_id, edge, remaining_s, HANDLE_KIND_STREAM)

    async def append(self, handle: Handle, chunk: Payload) -> None:
        try:
            await self._append(handle, chunk)
        except PayloadGoneError as error:
            raise StreamDroppedError(handle.edge, handle.request_id, str(error)) from error
        except StoreFullError as error:
            raise TransferError(handle.edge, handle.request_id, str(error)) from error

    async def end_stream(self, handle: Handle) -> None:
        await self._owner.end_stream(handle)

    async def chunks(self, handle: Handle, remaining_s: float) -> AsyncIterator[Payload]:
        deadline_s = _now() + remaining_s
        async for item in self._owner.chunks(handle, remaining_s):
            if "chunk" not in item:
                put = Handle.FromString(_checked_bytes(item.get("handle"), handle))
                item = await self.get(put, deadline_s - _now())
                await self.release(put)
            yield _checked_map(item.get("chunk"), handle)

    async def release(self, handle: Handle) -> None:
        await self._owner.release(handle)

    def census(self) -> Census:
        """What the store holds is counted there, wherever it lies."""
        return Census(payloads=0, size_bytes=0)

    async def wait_empty(self) -> None:
        await self._store.wait_empty()

    @property
    def _owner(self) -> Connector:
        """Asks the worker that owns a payload."""
        return self._context.siblings["grpc"]

    def _handle(self, key: str, request_id: str, edge: str, remaining_s: float, kind: HandleKind) -> Handle:
        return Handle(
            key=key,
            edge=edge,
            request_id=request_id,
            connector=self._context.name,
            owner=self._context.owner,
            owner_stage=self._context.transport.component,
            boot_id=self._context.boot_id,
            remaining_ms=int(remaining_s * 1000),
            kind=kind,
        )

    def _object_handle(self, key: str, request_id: str, edge: str, remaining_s: float) -> Handle:
        return self._handle(key, request_id, edge, remaining_s, HANDLE_KIND_OBJECT)

    def _held_by(self, service: str, key: str, handle: Handle, remaining_s: float, remove: WhenDropped) -> Handle:
        """The handle of an object that a service of its own has under the key; `remove` takes it from there."""
        handle.key = self._store.hold_elsewhere(_Lost(service), remaining_s, remove)
        handle.locator = key.encode()
        return handle

    async def _append(self, handle: Handle, chunk: Payload) -> None:
        stream, item = self._store.stream(handle.key), {"chunk": chunk}
        encoded = encode(item)
        if encoded.size_bytes > self.largest_inline_bytes:
            put = await self._put_item(self._windows[handle.key], handle, item, encoded)
            if put is not None:
                encoded = encode({"handle": put.SerializeToString()})
        await stream.append(encoded)

    async def _put_item(
        self, window: "Window", stream: Handle, item: Payload, encoded: EncodedPayload
    ) -> Handle | None:
        """The handle of an item that ends with its window; None if it is to travel in the stream after all."""
        await window.wait_for_room()
        put = await self.put(stream.request_id, stream.edge, item, window.remaining_s)
        window.add(put.key)
        return put


class _Lost:
    """Says to a consumer that comes over gRPC why its payload is not to be had: only the service has its bytes."""

    def __init__(self, service: str) -> None:
        self._service = service

    def slices(self, slice_bytes: int) -> Iterator[memoryview]:
        raise PayloadGoneError(f"the {self._service} no longer has the payload")


class Window:
    """The chunks of one stream that its consumer has not released yet."""

    def __init__(self, store: PayloadStore, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._store = store
        self._keys: set[str] = set()
        self._changed = asyncio.Event()
        self._is_closed = False

    @property
    def remaining_s(self) -> float:
        return self._deadline_s - _now()

    @property
    def has_room(self) -> bool:
        return len(self._keys) < BUFFER_CHUNKS

    async def wait_for_room(self) -> None:
        while not self.has_room and not self._is_closed:
            self._changed.clear()
            await self._changed.wait()
        self._check_open()

    def add(self, key: str) -> None:
        """From here on the chunk ends with the stream at the latest."""
        if self._is_closed:
            self._store.drop(key)
            self._check_open()
        self._keys.add(key)
        self._store.when_dropped(key, lambda: self._forget(key))

    def close(self) -> None:
        self._is_closed = True
        for key in list(self._keys):
            self._store.drop(key)
        self._changed.set()

    def _forget(self, key: str) -> None:
        self._keys.discard(key)
        self._changed.set()

    def _check_open(self) -> None:
        if self._is_closed:
            raise PayloadGoneError("the stream was released or its deadline has passed")


def _checked_map(value: object, handle: Handle) -> Payload:
    if not isinstance(value, dict):
        raise TransferError(handle.edge, handle.request_id, "the stream carries a chunk that is no payload")
    return value


def _checked_bytes(value: object, handle: Handle) -> bytes:
    if not isinstance(value, memoryview | bytes):
        raise TransferError(handle.edge, handle.request_id, "the stream carries neither a chunk nor its handle")
    return bytes(value)


def _now() -> float:
    return asyncio.get_running_loop().time()

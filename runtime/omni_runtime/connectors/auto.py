"""`auto`: inline for small payloads, shared memory where there is an arena with room, grpc for the rest.

Decided for each payload when it is put. One in shared memory can be fetched over gRPC as well, since its producer does
not know where the consumer will run: the handle's connector is then "auto", and the consumer decides. So it is for the
large chunks of a stream, of which others travel over gRPC.
"""

from omni_contract.wire.codec import EncodedPayload, encode
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.elsewhere import ElsewhereConnector, Window
from omni_runtime.connectors.grpc import GrpcConnector
from omni_runtime.connectors.inline import INLINE_LIMIT_BYTES, InlineConnector
from omni_runtime.connectors.protocol import Connector, ConnectorContext
from omni_runtime.connectors.shm.connector import ShmConnector

SHARED_CHUNK_BYTES = 128 * 2**10
"""A chunk from this size on is worth a message about it."""


class AutoConnector(ElsewhereConnector):
    """Its handles name the connector that was chosen, so consumers need not know of the choice."""

    largest_inline_bytes = SHARED_CHUNK_BYTES

    def __init__(self, context: ConnectorContext) -> None:
        super().__init__(context)
        self._inline = InlineConnector(context)

    @property
    def _grpc(self) -> GrpcConnector:
        connector = self._context.siblings["grpc"]
        assert isinstance(connector, GrpcConnector)
        return connector

    @property
    def _shm(self) -> ShmConnector | None:
        """None where stages share no memory."""
        connector = self._context.siblings.get("shm")
        assert isinstance(connector, ShmConnector | None)
        return connector

    async def open(self) -> None:
        pass

    async def put(self, request_id: str, edge: str, payload: Payload, remaining_s: float) -> Handle:
        return await self.put_encoded(request_id, edge, encode(payload), remaining_s)

    def inlined(self, request_id: str, edge: str, encoded: EncodedPayload) -> bytes | None:
        return encoded.to_bytes() if encoded.size_bytes <= INLINE_LIMIT_BYTES else None

    async def put_encoded(self, request_id: str, edge: str, encoded: EncodedPayload, remaining_s: float) -> Handle:
        if encoded.size_bytes <= INLINE_LIMIT_BYTES:
            return await self._inline.put_encoded(request_id, edge, encoded, remaining_s)
        # A final output goes to the frontend, which reads no shared memory.
        if self._shm is not None and edge != FINAL:
            handle = await self._shm.put_if_room(request_id, edge, encoded, remaining_s)
            if handle is not None:
                handle.connector = self._context.name
                return handle
        return self._grpc.hold(request_id, edge, encoded, remaining_s)

    async def get(self, handle: Handle, remaining_s: float) -> Payload:
        return await self._of(handle).get(handle, remaining_s)

    async def release(self, handle: Handle) -> None:
        is_own = handle.boot_id == self._context.boot_id
        await (self._grpc if is_own else self._of(handle)).release(handle)

    def _of(self, handle: Handle) -> Connector:
        if handle.connector == "inline":
            return self._inline
        shm = self._shm if handle.connector == self._context.name and handle.locator else None
        return shm if shm is not None and shm.can_read(handle) else self._grpc

    async def _put_item(self, window: Window, stream: Handle, item: Payload, encoded: EncodedPayload) -> Handle | None:
        """None, at once, if there is no room."""
        if self._shm is None or not window.has_room:
            return None
        put = await self._shm.put_if_room(stream.request_id, stream.edge, encoded, window.remaining_s)
        if put is not None:
            put.connector = self._context.name
            window.add(put.key)
        return put

    async def close(self) -> None:
        pass

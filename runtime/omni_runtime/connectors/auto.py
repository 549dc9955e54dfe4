"""`auto`: inline for small payloads, grpc for the rest; decided for each payload when it is put."""

from collections.abc import AsyncIterator

from omni_contract.wire.codec import encode
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.grpc import GrpcConnector
from omni_runtime.connectors.inline import INLINE_LIMIT_BYTES, InlineConnector
from omni_runtime.connectors.protocol import Census, ConnectorContext


class AutoConnector:
    """Its handles name the connector that was chosen, so consumers need not know of the choice."""

    def __init__(self, context: ConnectorContext) -> None:
        self._context = context
        self._inline = InlineConnector(context)

    @property
    def _grpc(self) -> GrpcConnector:
        connector = self._context.sibling("grpc")
        assert isinstance(connector, GrpcConnector)
        return connector

    def _of(self, handle: Handle) -> InlineConnector | GrpcConnector:
        return self._inline if handle.connector == "inline" else self._grpc

    async def open(self) -> None:
        pass

    async def put(self, request_id: str, edge: str, payload: Payload, remaining_s: float) -> Handle:
        encoded = encode(payload)
        chosen = self._inline if encoded.size_bytes <= INLINE_LIMIT_BYTES else self._grpc
        return chosen.hold(request_id, edge, encoded, remaining_s)

    async def get(self, handle: Handle, remaining_s: float) -> Payload:
        return await self._of(handle).get(handle, remaining_s)

    async def open_stream(self, request_id: str, edge: str, remaining_s: float) -> Handle:
        return await self._grpc.open_stream(request_id, edge, remaining_s)

    async def append(self, handle: Handle, chunk: Payload) -> None:
        await self._grpc.append(handle, chunk)

    async def end_stream(self, handle: Handle) -> None:
        await self._grpc.end_stream(handle)

    def chunks(self, handle: Handle, remaining_s: float) -> AsyncIterator[Payload]:
        return self._grpc.chunks(handle, remaining_s)

    async def release(self, handle: Handle) -> None:
        await self._of(handle).release(handle)

    def census(self) -> Census:
        return Census(payloads=0, size_bytes=0)

    async def wait_empty(self) -> None:
        pass

    async def close(self) -> None:
        pass

"""`inline`: the payload travels in the control message itself. Nothing is held anywhere."""

from collections.abc import AsyncIterator

from omni_contract.wire.codec import CodecError, EncodedPayload, decode, encode
from omni_contract.wire.errors import TransferError
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import HANDLE_KIND_OBJECT, Handle
from omni_runtime.connectors.protocol import Census, ConnectorContext

INLINE_LIMIT_BYTES = 65_536


class InlineConnector:
    """Handles whose locator is the encoded payload; their owner may be gone by the time they are read."""

    def __init__(self, context: ConnectorContext) -> None:
        self._context = context

    async def open(self) -> None:
        pass

    async def put(self, request_id: str, edge: str, payload: Payload, remaining_s: float) -> Handle:
        return await self.put_encoded(request_id, edge, encode(payload), remaining_s)

    def inlined(self, request_id: str, edge: str, encoded: EncodedPayload) -> bytes:
        if encoded.size_bytes > INLINE_LIMIT_BYTES:
            raise TransferError(
                edge,
                request_id,
                f"a payload of {encoded.size_bytes:,} bytes is above the {INLINE_LIMIT_BYTES:,} bytes that connector "
                '"inline" carries; use "auto" or "grpc"',
            )
        return encoded.to_bytes()

    async def put_encoded(self, request_id: str, edge: str, encoded: EncodedPayload, remaining_s: float) -> Handle:
        locator = self.inlined(request_id, edge, encoded)
        return Handle(
            edge=edge,
            request_id=request_id,
            connector="inline",
            owner=self._context.owner,
            owner_stage=self._context.transport.component,
            boot_id=self._context.boot_id,
            size_bytes=encoded.size_bytes,
            remaining_ms=int(remaining_s * 1000),
            kind=HANDLE_KIND_OBJECT,
            locator=locator,
        )

    async def get(self, handle: Handle, remaining_s: float) -> Payload:
        return decode_inline(handle.locator, handle.edge, handle.request_id)

    async def open_stream(self, request_id: str, edge: str, remaining_s: float) -> Handle:
        raise TransferError(edge, request_id, 'connector "inline" carries no streams; use "auto" or "grpc"')

    async def append(self, handle: Handle, chunk: Payload) -> None:
        raise TransferError(handle.edge, handle.request_id, 'connector "inline" carries no streams')

    async def end_stream(self, handle: Handle) -> None:
        raise TransferError(handle.edge, handle.request_id, 'connector "inline" carries no streams')

    async def chunks(self, handle: Handle, remaining_s: float) -> AsyncIterator[Payload]:
        raise TransferError(handle.edge, handle.request_id, 'connector "inline" carries no streams')
        yield {}

    async def release(self, handle: Handle) -> None:
        pass

    def census(self) -> Census:
        return Census(payloads=0, size_bytes=0)

    async def wait_empty(self) -> None:
        pass

    async def close(self) -> None:
        pass


def decode_inline(data: bytes, edge: str, request_id: str) -> Payload:
    """The payload in a control message; its arrays are writable and aligned, like those of every connector.

    A client's own input, which no stage holds for another, may fill the message.
    """
    if edge != FINAL and len(data) > INLINE_LIMIT_BYTES:
        raise TransferError(edge, request_id, f"an inline payload of {len(data):,} bytes is above the limit")
    try:
        return decode(data, own_memory=True)
    except CodecError as error:
        raise TransferError(edge, request_id, f"the inline payload cannot be read: {error}") from error

"""The payloads of one attempt: fetched from the workers that made them, put where others find them."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Literal, cast

from omni_contract.wire.chunk import Chunk, chunk_of
from omni_contract.wire.codec import CodecError
from omni_contract.wire.errors import TransferError
from omni_contract.wire.logs import log_fields
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import HANDLE_KIND_STREAM, Handle, Input
from omni_runtime.connectors.inline import decode_inline
from omni_runtime.connectors.protocol import Connector
from omni_runtime.together import together
from omni_runtime.tracing.spans import CONNECTOR, EDGE, SIZE_BYTES, Attributes, Span
from omni_runtime.worker.stage import Stage


class Transfers:
    """`handles` are the payloads held for others; `streams` are the inputs that are still being made."""

    def __init__(self, stage: Stage, request_id: str, deadline_s: float, span: Span) -> None:
        self.request_id = request_id
        self.handles: list[Handle] = []
        self.streams: dict[str, IncomingStream] = {}
        self.stage = stage
        self._deadline_s = deadline_s
        self._span = span

    @property
    def remaining_s(self) -> float:
        return self._deadline_s - time.monotonic()

    async def inputs(self, inputs: Sequence[Input]) -> Mapping[str, Payload]:
        """The whole inputs, those behind handles at the same time; streams are only opened."""
        if not any(item.HasField("handle") for item in inputs):
            return {item.edge: self._inline(item) for item in inputs}
        whole = [item for item in inputs if not _is_stream(item)]
        self.streams = {item.edge: IncomingStream(self, item.handle) for item in inputs if _is_stream(item)}
        return dict(zip((item.edge for item in whole), await together(map(self._input, whole)), strict=True))

    def readers(self) -> Mapping[str, AsyncIterator[Chunk]]:
        """The streams, for the engine."""
        return {edge: aiter(stream) for edge, stream in self.streams.items()}

    async def put(self, edge: str, payload: Payload) -> Handle:
        with self.transfer("put", edge) as span:
            handle = await self.connector(edge).put(self.request_id, edge, payload, self.remaining_s)
            span.end(attributes=_transferred(handle))
        if handle.connector != "inline":
            self.handles.append(handle)
        self.count(edge, "out", handle.size_bytes)
        return handle

    async def open_stream(self, edge: str) -> Handle:
        handle = await self.connector(edge).open_stream(self.request_id, edge, self.remaining_s)
        self.handles.append(handle)
        return handle

    def connector(self, edge: str) -> Connector:
        """What carries an edge that leaves this stage."""
        end = self.stage.outputs.get(edge)
        return self.stage.connectors.connector(end.connector if end else "auto")

    async def stop_reading(self) -> None:
        """The engine is done: whoever makes what is left of a stream may stop."""
        for stream in self.streams.values():
            await stream.close()

    async def release(self, and_streams: bool = True) -> None:
        """Frees what is held for others."""
        kept = [handle for handle in self.handles if handle.kind == HANDLE_KIND_STREAM and not and_streams]
        freed, self.handles = [handle for handle in self.handles if handle not in kept], kept
        for handle in freed:
            await self.stage.connectors.release(handle)

    def count(self, edge: str, direction: Literal["in", "out"], size_bytes: int) -> None:
        self.stage.metrics.count_transfer(edge, direction, size_bytes)

    @contextmanager
    def transfer(self, verb: str, edge: str) -> Iterator[Span]:
        """The block ends the span; if it does not get that far, the transfer has failed."""
        span = self.stage.tracing.start(f"{verb} {edge or 'output'}", self._span.traceparent, {EDGE: edge})
        try:
            yield span
        finally:
            span.end("failed")

    async def _input(self, item: Input) -> Payload:
        if not item.HasField("handle"):
            return self._inline(item)
        with log_fields(edge=item.edge), self.transfer("get", item.edge) as span:
            payload = await self.stage.connectors.get(item.handle, self.remaining_s)
            span.end(attributes=_transferred(item.handle))
            end = self.stage.inputs.get(item.edge)
            if end is None or end.retain == "consumed":
                await self.stage.connectors.release(item.handle)
        self.count(item.edge, "in", item.handle.size_bytes)
        return self._taken(item.edge, payload)

    def _inline(self, item: Input) -> Payload:
        self.count(item.edge, "in", len(item.inline))
        return self._taken(item.edge, decode_inline(item.inline, item.edge, self.request_id))

    def _taken(self, edge: str, payload: Payload) -> Payload:
        self.stage.schemas.check_taken(edge, payload)
        return payload


class IncomingStream:
    """The chunks of one input as they come; to be read once. Closing it tells the producer, wherever it is."""

    def __init__(self, transfers: Transfers, handle: Handle) -> None:
        self._transfers = transfers
        self._handle = handle
        self._chunks = self._read()

    def __aiter__(self) -> AsyncIterator[Chunk]:
        return self._chunks

    async def close(self) -> None:
        await self._chunks.aclose()
        await self._transfers.stage.connectors.release(self._handle)

    async def _read(self) -> AsyncGenerator[Chunk, None]:
        handle, transfers = self._handle, self._transfers
        payloads = transfers.stage.connectors.chunks(handle, transfers.remaining_s)
        with transfers.transfer("stream", handle.edge) as span:
            async with aclosing(cast(AsyncGenerator[Payload, None], payloads)):
                async for payload in payloads:
                    chunk = self._checked(payload)
                    yield chunk
                    if chunk.is_last:
                        span.end(attributes={CONNECTOR: handle.connector})
                        return
        raise TransferError(handle.edge, handle.request_id, "the stream ended without its last chunk")

    def _checked(self, payload: Payload) -> Chunk:
        try:
            chunk = chunk_of(payload)
        except CodecError as error:
            raise TransferError(self._handle.edge, self._handle.request_id, str(error)) from error
        for item in chunk.items:
            self._transfers.stage.schemas.check_taken(self._handle.edge, item)
        return chunk


def _is_stream(item: Input) -> bool:
    return item.handle.kind == HANDLE_KIND_STREAM


def _transferred(handle: Handle) -> Attributes:
    return {CONNECTOR: handle.connector, SIZE_BYTES: handle.size_bytes}

"""The payloads of one attempt: fetched from the workers that made them, put where others find them."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import TypeAlias, cast

from omni_contract.wire.chunk import Chunk, chunk_of
from omni_contract.wire.codec import CodecError, encode
from omni_contract.wire.errors import TransferError
from omni_contract.wire.logs import log_fields
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Payload, data_bytes
from omni_contract.wire.stage_pb2 import HANDLE_KIND_STREAM, Handle, Input
from omni_runtime.connectors.inline import decode_inline
from omni_runtime.together import together
from omni_runtime.tracing.spans import CHUNKS, CONNECTOR, EDGE, ITEMS, SIZE_BYTES, Attributes, Span, UnrecordedSpan
from omni_runtime.worker.measures import Flow, Measures
from omni_runtime.worker.stage import Stage

Made: TypeAlias = bytes | Handle
"""A payload for others: all of a small one, or the handle of what is held."""


class Transfers:
    """`handles` are the payloads held for others; `streams` are the inputs that are still being made.

    `measures` is None unless the frontend wants to know what each edge took. `parts` are of the client's input, before
    what its start has of it.
    """

    def __init__(
        self,
        stage: Stage,
        request_id: str,
        deadline_s: float,
        span: Span,
        measures: Measures | None = None,
        parts: Sequence[bytes] = (),
    ) -> None:
        self.request_id = request_id
        self.handles: list[Handle] = []
        self.streams: dict[str, IncomingStream] = {}
        self.stage = stage
        self._deadline_s = deadline_s
        self._span = span
        self._measures = measures
        self._parts = parts
        self._outgoing: list[OutgoingStream] = []

    @property
    def remaining_s(self) -> float:
        return self._deadline_s - time.monotonic()

    async def inputs(self, inputs: Sequence[Input]) -> Mapping[str, Payload]:
        """The whole inputs, those behind handles at the same time; streams are only opened."""
        inline = {item.edge: self._inline(item) for item in inputs if not item.HasField("handle")}
        if len(inline) == len(inputs):
            return inline
        held = [item for item in inputs if item.HasField("handle")]
        whole = [item for item in held if not _is_stream(item)]
        self.streams = {item.edge: IncomingStream(self, item.handle) for item in held if _is_stream(item)}
        fetched = await together(map(self._fetched, whole))
        return inline | dict(zip((item.edge for item in whole), fetched, strict=True))

    def readers(self) -> Mapping[str, AsyncIterator[Chunk]]:
        """The streams, for the engine."""
        return {edge: aiter(stream) for edge, stream in self.streams.items()}

    async def put(self, edge: str, payload: Payload) -> Made:
        """For the frontend to pass on; what is held for others is freed by `release`."""
        began_s, span = time.monotonic(), self.start_span("put", edge)
        try:
            made = await self._put(edge, payload)
            span.end(attributes=_transferred(made))
        finally:
            span.end("failed")
        if isinstance(made, Handle):
            self.handles.append(made)
        size_bytes, took_s = _size_bytes(made), time.monotonic() - began_s
        for flow in self.flows(edge):
            flow.put(size_bytes, took_s)
        return made

    async def _put(self, edge: str, payload: Payload) -> Made:
        carrier = self.stage.carrier(edge)
        if carrier.inline is None:
            return await carrier.connector.put(self.request_id, edge, payload, self.remaining_s)
        encoded = encode(payload)
        inline = carrier.inline.inlined(self.request_id, edge, encoded)
        if inline is not None:
            return inline
        return await carrier.inline.put_encoded(self.request_id, edge, encoded, self.remaining_s)

    async def open_stream(self, edge: str) -> "OutgoingStream":
        handle = await self.stage.carrier(edge).connector.open_stream(self.request_id, edge, self.remaining_s)
        self.handles.append(handle)
        stream = OutgoingStream(self, handle, self.start_span("send", edge))
        self._outgoing.append(stream)
        return stream

    async def finish_streams(self) -> None:
        """The engine is done: whoever makes what is left of a stream may stop, and what we send has ended or failed."""
        for sent in self._outgoing:
            sent.failed()
        for stream in self.streams.values():
            await stream.close()

    async def release(self, and_streams: bool = True) -> None:
        """Frees what is held for others."""
        kept = [handle for handle in self.handles if handle.kind == HANDLE_KIND_STREAM and not and_streams]
        freed, self.handles = [handle for handle in self.handles if handle not in kept], kept
        for handle in freed:
            await self.stage.connectors.release(handle)

    def start_span(self, verb: str, edge: str) -> Span:
        if isinstance(self._span, UnrecordedSpan):
            return self._span
        return self.stage.tracing.start(f"{verb} {edge or 'output'}", self._span.traceparent, {EDGE: edge})

    def flows(self, edge: str) -> tuple[Flow, ...]:
        """Where what goes over the edge is added up: for the metrics, and for the request if it is measured."""
        if self._measures is None or edge == FINAL:
            return (self.stage.metrics.flow(edge),)
        return self.stage.metrics.flow(edge), self._measures.flow(edge)

    @contextmanager
    def _transfer(self, verb: str, edge: str) -> Iterator[Span]:
        """The block ends the span; if it does not get that far, the transfer has failed."""
        span = self.start_span(verb, edge)
        try:
            yield span
        finally:
            span.end("failed")

    async def _fetched(self, item: Input) -> Payload:
        began_s = time.monotonic()
        with log_fields(edge=item.edge), self._transfer("get", item.edge) as span:
            payload = await self.stage.connectors.get(item.handle, self.remaining_s)
            self._got(item.edge, item.handle.size_bytes, began_s)
            span.end(attributes=_transferred(item.handle))
            end = self.stage.inputs.get(item.edge)
            if end is None or end.retain == "consumed":
                await self.stage.connectors.release(item.handle)
        return self._taken(item.edge, payload)

    def _inline(self, item: Input) -> Payload:
        began_s, data = time.monotonic(), item.inline
        if self._parts and item.edge == FINAL:
            data, self._parts = b"".join((*self._parts, data)), ()
        payload = decode_inline(data, item.edge, self.request_id)
        self._got(item.edge, len(data), began_s)
        return self._taken(item.edge, payload)

    def _taken(self, edge: str, payload: Payload) -> Payload:
        self.stage.schemas.check_taken(edge, payload)
        return payload

    def _got(self, edge: str, size_bytes: int, began_s: float) -> None:
        took_s = time.monotonic() - began_s
        for flow in self.flows(edge):
            flow.take(size_bytes, took_s)


@dataclass(slots=True)
class _Count:
    """What has gone through one stream: its one span says so at its end."""

    chunks: int = 0
    items: int = 0
    size_bytes: int = 0

    def add(self, chunk: Chunk, payload: Payload) -> int:
        """How many bytes the chunk has."""
        size_bytes = data_bytes(payload)
        self.chunks += 1
        self.items += len(chunk.items)
        self.size_bytes += size_bytes
        return size_bytes

    def attributes(self, connector: str) -> Attributes:
        return {CONNECTOR: connector, SIZE_BYTES: self.size_bytes, ITEMS: self.items, CHUNKS: self.chunks}


class OutgoingStream:
    """The chunks of one output on their way to its consumer."""

    def __init__(self, transfers: Transfers, handle: Handle, span: Span) -> None:
        self.handle = handle
        self._transfers = transfers
        self._span = span
        self._count = _Count()

    async def append(self, chunk: Chunk) -> None:
        """Waits while the consumer is too far behind; StreamDroppedError if it wants no more."""
        began_s, payload = time.monotonic(), chunk.payload()
        connector = self._transfers.stage.carrier(self.handle.edge).connector
        await connector.append(self.handle, payload)
        size_bytes = self._count.add(chunk, payload)
        took_s = time.monotonic() - began_s
        for flow in self._transfers.flows(self.handle.edge):
            flow.put_chunk(size_bytes, took_s)
        if chunk.is_last:
            await connector.end_stream(self.handle)
            self._span.end(attributes=self._count.attributes(self.handle.connector))

    def failed(self) -> None:
        """No-op if it has come to its end."""
        self._span.end("broken off", self._count.attributes(self.handle.connector))


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
        span, count = transfers.start_span("stream", handle.edge), _Count()
        try:
            async with aclosing(cast(AsyncGenerator[Payload, None], payloads)):
                async for payload in payloads:
                    chunk = self._checked(payload)
                    size_bytes = count.add(chunk, payload)
                    for flow in transfers.flows(handle.edge):
                        flow.take_chunk(size_bytes)
                    if chunk.is_last:
                        span.end(attributes=count.attributes(handle.connector))
                    yield chunk
                    if chunk.is_last:
                        return
        finally:
            span.end("broken off", count.attributes(handle.connector))
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


def _transferred(made: Made) -> Attributes:
    return {CONNECTOR: "inline" if isinstance(made, bytes) else made.connector, SIZE_BYTES: _size_bytes(made)}


def _size_bytes(made: Made) -> int:
    return len(made) if isinstance(made, bytes) else made.size_bytes

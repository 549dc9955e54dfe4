"""The consumer's side of streams: those of one owner come over one call, which lasts as long as there are any."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count

import grpc

from omni_contract.wire.stage_pb2 import ChunkBatch, Handle, Leave, ReadBatch, ReadMessage
from omni_contract.wire.stage_pb2_grpc import StageWorkerStub
from omni_runtime.connectors.arrivals import Arrivals
from omni_runtime.connectors.channels import ChannelPool
from omni_runtime.connectors.counters import Counters


class BrokenOffError(Exception):
    """The owner has ended the call before the stream."""


class StreamReader:
    """Calls by their channels: with a new certificate comes a new channel. `limit_bytes` is of one chunk."""

    def __init__(self, channels: ChannelPool, counters: Counters, limit_bytes: int) -> None:
        self._channels = channels
        self._limit_bytes = limit_bytes
        self._counters = counters
        self._calls: dict[grpc.aio.Channel, _Call] = {}
        self._running: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def reading(self, handle: Handle) -> AsyncIterator[Arrivals]:
        """The stream's chunks, while the block runs."""
        async with self._channels.channel(handle.owner, handle.owner_stage) as channel:
            call = self._call(channel)
            arrivals = call.begin(handle)
            try:
                yield arrivals
            finally:
                call.leave(arrivals)

    async def close(self) -> None:
        """Streams that are still read break off."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _call(self, channel: grpc.aio.Channel) -> "_Call":
        call = self._calls.get(channel)
        return self._begun(channel) if call is None or call.has_ended else call

    def _begun(self, channel: grpc.aio.Channel) -> "_Call":
        call = self._calls[channel] = _Call(self._counters, self._limit_bytes)
        task = asyncio.get_running_loop().create_task(call.run(StageWorkerStub(channel)))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: self._forget(channel, call))
        return call

    def _forget(self, channel: grpc.aio.Channel, call: "_Call") -> None:
        if self._calls[channel] is call:
            del self._calls[channel]


class _Call:
    """All streams of one owner that are read now. What is said of them in one turn of the loop goes together."""

    def __init__(self, counters: Counters, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.has_ended = False
        """True once it takes no more streams: it has read its last one, or is broken."""
        self._counters = counters
        self._streams: dict[int, Arrivals] = {}
        self._numbers = count(1)
        self._batch = ReadBatch()
        self._has_news = asyncio.Event()

    def begin(self, handle: Handle) -> Arrivals:
        number = next(self._numbers)
        arrivals = Arrivals(number, partial(self._taken, number), self._limit_bytes)
        self._streams[number] = arrivals
        self._say(ReadMessage(number=number, begin=handle))
        return arrivals

    def leave(self, arrivals: Arrivals) -> None:
        del self._streams[arrivals.number]
        self.has_ended |= not self._streams
        self._say(ReadMessage(number=arrivals.number, leave=Leave()))

    async def run(self, stub: StageWorkerStub) -> None:
        """Whatever ends it breaks the streams that are left."""
        end: Exception = BrokenOffError("the stream broke off before its end")
        try:
            async for batch in stub.Read(self._batches()):
                self._deliver(batch)
        except grpc.aio.AioRpcError as error:
            end = error
        finally:
            self.has_ended = True
            self._has_news.set()
            for arrivals in self._streams.values():
                arrivals.fail(end)

    def _deliver(self, batch: ChunkBatch) -> None:
        chunks = 0
        for part in batch.parts:
            if (arrivals := self._streams.get(part.number)) is not None:
                chunks += arrivals.take(part)
        self._counters.chunks += chunks
        self._counters.chunk_messages += bool(chunks)

    async def _batches(self) -> AsyncIterator[ReadBatch]:
        """The owner takes their end for the end of all streams."""
        while not self.has_ended:
            await self._has_news.wait()
            self._has_news.clear()
            batch, self._batch = self._batch, ReadBatch()
            yield batch

    def _taken(self, number: int, chunks: int) -> None:
        self._say(ReadMessage(number=number, taken=chunks))

    def _say(self, message: ReadMessage) -> None:
        self._batch.messages.append(message)
        self._has_news.set()

"""Streams from one worker to another: what comes up together travels together, and nobody holds up anybody else."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_contract.wire.codec import decode, encode
from omni_contract.wire.errors import TransferError
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle, ReadBatch, ReadMessage
from omni_contract.wire.stage_pb2_grpc import add_StageWorkerServicer_to_server
from omni_runtime.connectors.arrivals import Arrivals
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.serving import PayloadServicer
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.connectors.stream_sender import AHEAD_CHUNKS, PIECE_BYTES, StreamSender

LONG_S = 20.0


class World:
    """An owner that serves its streams, and a consumer; `store` is the owner's."""

    def __init__(self, store: PayloadStore, owner: ConnectorSet, consumer: ConnectorSet) -> None:
        self.store = store
        self._owner = owner.connector("grpc")
        self._consumer = consumer
        self.counters = consumer.health()["grpc"].counters

    async def opened(self) -> Handle:
        return await self._owner.open_stream("r-1", "a->b", LONG_S)

    async def append(self, handle: Handle, *sizes: int) -> None:
        for size_bytes in sizes:
            await self._owner.append(handle, chunk(size_bytes))

    async def end(self, handle: Handle) -> None:
        await self._owner.end_stream(handle)

    def chunks(self, handle: Handle) -> AsyncIterator[Payload]:
        return self._consumer.chunks(handle, LONG_S)

    async def all_of(self, handle: Handle) -> list[Payload]:
        return [chunk async for chunk in self.chunks(handle)]


@asynccontextmanager
async def running_world(folder: Path, consumer_bytes: int = 2**30) -> AsyncIterator[World]:
    store, address, server = PayloadStore(2**30), f"unix:{folder}/owner", grpc.aio.server()
    add_StageWorkerServicer_to_server(PayloadServicer(store, "boot-1"), server)
    server.add_insecure_port(address)
    async with AsyncExitStack() as closing:
        await server.start()
        closing.push_async_callback(server.stop, None)
        owner, consumer = (
            ConnectorSet(address, "boot-1", store),
            ConnectorSet("", "boot-2", PayloadStore(consumer_bytes)),
        )
        for connectors in (owner, consumer):
            closing.push_async_callback(connectors.close)
        yield World(store, owner, consumer)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running_world(tmp_path) as running, asyncio.timeout(LONG_S):
        yield running


def chunk(size_bytes: int) -> Payload:
    return {"data": bytes([size_bytes % 256]) * size_bytes}


def chunks(sizes: Sequence[int]) -> list[Payload]:
    return [chunk(size_bytes) for size_bytes in sizes]


async def test_what_waits_goes_in_one_message_with_the_end(world: World):
    handle = await world.opened()
    await world.append(handle, 1, 2, 3)
    await world.end(handle)
    assert await world.all_of(handle) == chunks((1, 2, 3))
    assert (world.counters.chunks, world.counters.chunk_messages) == (3, 1)


async def test_what_comes_up_together_in_several_streams_goes_in_one_message(world: World):
    handles = [await world.opened() for _ in range(8)]
    for handle in handles:
        await world.append(handle, 1)
    streams = [world.chunks(handle) for handle in handles]
    assert await asyncio.gather(*(anext(stream) for stream in streams)) == chunks([1] * 8)
    before = world.counters.chunk_messages
    for size_bytes, handle in enumerate(handles):
        await world.append(handle, size_bytes)
    assert await asyncio.gather(*(anext(stream) for stream in streams)) == chunks(range(8))
    assert world.counters.chunk_messages == before + 1


async def test_a_stream_that_nobody_reads_on_holds_nobody_up(world: World):
    idle, busy = await world.opened(), await world.opened()
    await world.append(idle, *[100] * (3 * AHEAD_CHUNKS))
    unread = world.chunks(idle)
    assert await anext(unread) == chunk(100)
    await world.append(busy, *range(3 * AHEAD_CHUNKS))
    await world.end(busy)
    assert await world.all_of(busy) == chunks(range(3 * AHEAD_CHUNKS))
    assert world.store.size_bytes == 2 * AHEAD_CHUNKS * encode(chunk(100)).size_bytes
    await world.end(idle)
    assert len([chunk async for chunk in unread]) == 3 * AHEAD_CHUNKS - 1


async def test_a_chunk_that_is_larger_than_a_message_comes_whole_and_in_its_turn(world: World):
    handle, sizes = await world.opened(), [5, 3 * PIECE_BYTES + 1, 6, PIECE_BYTES, 0]
    await world.append(handle, *sizes)
    await world.end(handle)
    assert await world.all_of(handle) == chunks(sizes)


async def test_a_chunk_that_is_larger_than_the_consumer_holds_ends_its_stream_alone(tmp_path: Path):
    async with running_world(tmp_path, consumer_bytes=3 * PIECE_BYTES) as world, asyncio.timeout(LONG_S):
        large, small = await world.opened(), await world.opened()
        await world.append(large, 1, 4 * PIECE_BYTES)
        await world.append(small, 1)
        await world.end(small)
        stream = world.chunks(large)
        assert await anext(stream) == chunk(1)
        with pytest.raises(TransferError, match="more than this process's limit of 3,145,728 bytes"):
            await anext(stream)
        assert await world.all_of(small) == chunks([1])


async def test_a_stream_is_read_once(world: World):
    handle = await world.opened()
    await world.append(handle, 1)
    reading = world.chunks(handle)
    await anext(reading)
    with pytest.raises(TransferError, match="its first chunk was delivered and freed"):
        await world.all_of(handle)


async def test_a_stream_that_is_dropped_fails_its_reader(world: World):
    handle = await world.opened()
    reading = asyncio.ensure_future(anext(world.chunks(handle)))
    await asyncio.sleep(0)
    world.store.drop(handle.key)
    with pytest.raises(TransferError, match=r"was released or its deadline has passed|not held here"):
        await reading


async def test_whoever_reads_after_all_others_have_ended_gets_a_call_of_their_own(world: World):
    for size_bytes in range(3):
        handle = await world.opened()
        await world.append(handle, size_bytes)
        await world.end(handle)
        assert await world.all_of(handle) == [chunk(size_bytes)]


@pytest.mark.case("runtime:S5")
@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 5_000) | st.just(PIECE_BYTES), max_size=40), max_size=3), st.integers(0, 3))
def test_each_consumer_sees_its_chunks_however_they_travel(streams: list[list[int]], pauses: int):
    asyncio.run(asyncio.wait_for(_play(streams, pauses), LONG_S))


class Wire:
    """Both sides of one call without a network: what the consumer says, and where the owner's parts arrive."""

    def __init__(self, store: PayloadStore, keys: Sequence[str]) -> None:
        self._said = asyncio.Queue[ReadBatch]()
        self._sender = StreamSender(lambda handle: store.stream(handle.key))
        self.arrivals = [Arrivals(number, partial(self._taken, number), 2**30) for number in range(len(keys))]
        for number, key in enumerate(keys):
            self._say(ReadMessage(number=number, begin=Handle(key=key)))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._sender.listen(self._asked())), asyncio.create_task(self._deliver())]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _asked(self) -> AsyncIterator[ReadBatch]:
        while True:
            yield await self._said.get()

    async def _deliver(self) -> None:
        async for batch in self._sender.batches():
            for part in batch.parts:
                self.arrivals[part.number].take(part)

    def _taken(self, number: int, taken: int) -> None:
        self._say(ReadMessage(number=number, taken=taken))

    def _say(self, message: ReadMessage) -> None:
        self._said.put_nowait(ReadBatch(messages=[message]))


async def _play(streams: list[list[int]], pauses: int) -> None:
    store = PayloadStore(2**30)
    keys = [store.open_stream(LONG_S) for _ in streams]

    async def produce(key: str, sizes: list[int]) -> None:
        for size_bytes in sizes:
            await store.stream(key).append(encode(chunk(size_bytes)))
            for _ in range(size_bytes % (pauses + 1)):
                await asyncio.sleep(0)
        store.stream(key).end()

    wire = Wire(store, keys)
    async with wire.running():
        making = [asyncio.create_task(produce(key, sizes)) for key, sizes in zip(keys, streams, strict=True)]
        for one, sizes in zip(wire.arrivals, streams, strict=True):
            assert [decode(block) async for block in one] == chunks(sizes)
        await asyncio.gather(*making)

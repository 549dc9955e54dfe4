"""Chunks that wait for a slow consumer travel together, and it sees the same chunks as if each had come alone."""

import asyncio
from collections.abc import Sequence

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_contract.wire.codec import decode, encode
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import HANDLE_KIND_STREAM, FetchRequest, Handle, PayloadSlice
from omni_runtime.connectors.chunk_reader import ChunkReader
from omni_runtime.connectors.serving import PayloadServicer
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.connectors.stream import BATCH_BYTES, BUFFER_BYTES, BUFFER_CHUNKS, ChunkStream

LONG_S = 20.0
BOOT = "boot-1"


class World:
    """An owner's side without a network, and the messages that it has sent."""

    def __init__(self) -> None:
        store = PayloadStore(2**30)
        key = store.open_stream(LONG_S)
        self.stream: ChunkStream = store.stream(key)
        self.messages: list[PayloadSlice] = []
        self._handle = Handle(key=key, boot_id=BOOT, kind=HANDLE_KIND_STREAM)
        self._servicer = PayloadServicer(store, BOOT)

    async def append(self, *sizes: int) -> None:
        for size_bytes in sizes:
            await self.stream.append(encode(chunk(size_bytes)))

    async def fetch(self, reader: ChunkReader, most_chunks: int) -> list[Payload]:
        """The chunks of one call."""
        request = FetchRequest(handle=self._handle, from_chunk=reader.position, most_chunks=most_chunks)
        found: list[Payload] = []
        async for message in self._servicer.Fetch(request, NO_CONTEXT):
            self.messages.append(message)
            found += [decode(block) for block in reader.take(message)]
        return found

    async def fetch_all(self, most_chunks: int) -> list[Payload]:
        found, reader = [], ChunkReader()
        while not reader.has_ended:
            found += await self.fetch(reader, most_chunks)
        return found


NO_CONTEXT: grpc.aio.ServicerContext = None  # type: ignore[assignment]


def chunk(size_bytes: int) -> Payload:
    return {"data": bytes([size_bytes % 256]) * size_bytes}


def chunks(sizes: Sequence[int]) -> list[Payload]:
    return [chunk(size_bytes) for size_bytes in sizes]


async def test_what_waits_goes_in_one_message_with_the_end():
    world = World()
    await world.append(1, 2, 3)
    world.stream.end()
    assert await world.fetch_all(most_chunks=16) == chunks((1, 2, 3))
    assert len(world.messages) == 1


async def test_what_does_not_wait_goes_at_once_and_alone():
    world, reader = World(), ChunkReader()
    fetching = asyncio.create_task(world.fetch(reader, most_chunks=2))
    for size_bytes in (1, 2):
        await world.append(size_bytes)
        async with asyncio.timeout(LONG_S):
            while reader.position < size_bytes:  # noqa: ASYNC110 - the reader tells nobody
                await asyncio.sleep(0)
    assert await fetching == chunks((1, 2))
    assert [len(message.chunks) for message in world.messages] == [1, 1]


async def test_a_call_ends_after_so_many_chunks_and_the_next_goes_on_there():
    world, reader = World(), ChunkReader()
    await world.append(*range(5))
    assert await world.fetch(reader, most_chunks=3) == chunks(range(3))
    world.stream.end()
    assert await world.fetch(reader, most_chunks=3) == chunks((3, 4))
    assert reader.has_ended


async def test_chunks_together_stay_below_the_size_of_a_message():
    world = World()
    sizes = [BATCH_BYTES // 2, BATCH_BYTES // 3, BATCH_BYTES // 2, 3 * BATCH_BYTES, 5]
    await world.append(*sizes)
    world.stream.end()
    assert await world.fetch_all(most_chunks=16) == chunks(sizes)
    assert max(message.ByteSize() for message in world.messages) < 1.1 * BATCH_BYTES
    assert [len(message.chunks) for message in world.messages if message.chunks] == [2, 1, 1]


async def test_chunks_that_travel_together_make_room_for_the_producer_together():
    world, reader = World(), ChunkReader()
    await world.append(*[BUFFER_BYTES // 40] * 38)
    blocked = asyncio.create_task(world.append(*[BUFFER_BYTES // 20]))
    await asyncio.sleep(0.01)
    assert not blocked.done()
    await world.fetch(reader, most_chunks=BUFFER_CHUNKS)
    await asyncio.wait_for(blocked, LONG_S)


async def test_a_consumer_that_knows_no_batches_gets_one_chunk_after_the_other():
    world = World()
    await world.append(1, 2, 3)
    world.stream.end()
    assert await world.fetch_all(most_chunks=0) == chunks((1, 2, 3))
    assert not any(message.chunks for message in world.messages)


@pytest.mark.case("runtime:S5")
@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 5_000) | st.just(BATCH_BYTES), max_size=40), st.integers(1, 20), st.integers(0, 3))
def test_the_consumer_sees_the_same_chunks_however_they_travel(sizes: list[int], most_chunks: int, pauses: int):
    async def run() -> list[Payload]:
        world = World()

        async def produce() -> None:
            for size_bytes in sizes:
                await world.append(size_bytes)
                for _ in range(size_bytes % (pauses + 1)):
                    await asyncio.sleep(0)
            world.stream.end()

        producing = asyncio.create_task(produce())
        found = await asyncio.wait_for(world.fetch_all(most_chunks), LONG_S)
        await producing
        return found

    assert asyncio.run(run()) == chunks(sizes)

"""Streams of chunks: in order, bounded, ended or broken, never silent."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from omni_contract.wire.errors import TransferError
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.protocol import MemoryPlace
from omni_runtime.connectors.stream import BUFFER_CHUNKS
from tests.connectors import payloads
from tests.connectors.backends import Backend
from tests.connectors.peer import PATIENCE_S, Peer, Refused

pytestmark = pytest.mark.connectors

KIB, MIB = 2**10, 2**20


@pytest.fixture
async def small_peer(large_backend: Backend, memory: MemoryPlace, tmp_path: Path) -> AsyncIterator[Peer]:
    """One that can hold little, so that its streams cannot go far ahead of their readers."""
    async with Peer(large_backend, memory, tmp_path, limit_bytes=256 * KIB) as producer:
        yield producer


async def chunks_of(consumer: ConnectorSet, handle: Handle) -> list[Payload]:
    return [chunk async for chunk in consumer.connector(handle.connector).chunks(handle, PATIENCE_S)]


@pytest.mark.case("runtime:S5")
async def test_a_producer_faster_than_its_consumer_loses_no_chunk_and_keeps_the_order(
    small_peer: Peer, consumer: ConnectorSet
):
    handle = await small_peer.open_stream()
    sizes = [(index * 977) % 5_000 for index in range(10 * BUFFER_CHUNKS)]
    appending = small_peer.begin("append", handle=handle.SerializeToString().hex(), sizes=sizes)
    assert (await small_peer.census()).payloads == 1
    assert not appending.done()
    received = []
    async for chunk in consumer.connector(handle.connector).chunks(handle, PATIENCE_S):
        received.append(chunk)
        if len(received) == len(sizes):
            await small_peer.end_stream(handle)
    assert received == [payloads.raw(size_bytes, index) for index, size_bytes in enumerate(sizes)]


async def test_chunks_that_wait_for_a_slow_consumer_travel_together(large_peer: Peer, consumer: ConnectorSet):
    handle = await large_peer.open_stream()
    sizes = [(index * 977) % 5_000 for index in range(10 * BUFFER_CHUNKS)]
    appending = large_peer.begin("append", handle=handle.SerializeToString().hex(), sizes=sizes)
    received = []
    async for chunk in consumer.connector(handle.connector).chunks(handle, PATIENCE_S):
        received.append(chunk)
        # What the consumer does with it takes longer than making it.
        await large_peer.census()
        if len(received) == len(sizes):
            await appending
            await large_peer.end_stream(handle)
    counters = consumer.health()["grpc"].counters
    print(f"{counters.chunks} chunks in {counters.chunk_messages} messages")
    assert received == [payloads.raw(size_bytes, index) for index, size_bytes in enumerate(sizes)]
    assert counters.chunks == len(sizes)
    assert counters.chunk_messages < len(sizes) / 2


async def test_chunks_larger_than_a_slice_arrive_whole(large_peer: Peer, consumer: ConnectorSet):
    handle = await large_peer.open_stream()
    await large_peer.append(handle, 3 * MIB + 1, 0, MIB)
    await large_peer.end_stream(handle)
    assert await chunks_of(consumer, handle) == [
        payloads.raw(size_bytes, index) for index, size_bytes in enumerate((3 * MIB + 1, 0, MIB))
    ]


async def test_an_empty_stream_just_ends(large_peer: Peer, consumer: ConnectorSet):
    handle = await large_peer.open_stream()
    await large_peer.end_stream(handle)
    assert await chunks_of(consumer, handle) == []


@pytest.mark.case("runtime:C3")
async def test_a_stream_whose_owner_dies_breaks_with_an_error(large_peer: Peer, consumer: ConnectorSet):
    handle = await large_peer.open_stream()
    await large_peer.append(handle, 100)
    received = []
    with pytest.raises(TransferError, match="is gone or cannot be reached"):
        async for chunk in consumer.connector(handle.connector).chunks(handle, PATIENCE_S):
            received.append(chunk)
            await large_peer.kill()
    assert received == [payloads.raw(100)]


async def test_a_stream_that_nobody_feeds_ends_at_the_readers_deadline(large_peer: Peer, consumer: ConnectorSet):
    handle = await large_peer.open_stream()
    with pytest.raises(TransferError, match=r"did not deliver within 0\.2 s"):
        async for _ in consumer.connector(handle.connector).chunks(handle, 0.2):
            pass


async def test_the_producer_learns_that_its_consumer_has_left(small_peer: Peer, consumer: ConnectorSet):
    handle = await small_peer.open_stream()
    appending = small_peer.begin("append", handle=handle.SerializeToString().hex(), sizes=[5_000] * 60)
    await consumer.release(handle)
    with pytest.raises(Refused, match="the stream was released"):
        await appending
    await small_peer.wait_empty()


async def test_inline_says_that_it_carries_no_streams(consumer: ConnectorSet):
    with pytest.raises(TransferError, match='"inline" carries no streams; use "auto" or "grpc"'):
        await consumer.connector("inline").open_stream("r-1", "a->b", PATIENCE_S)

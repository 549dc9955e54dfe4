"""What is put in one process is got in another, byte for byte, by every connector."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from omni_contract.wire.errors import TransferError
from omni_contract.wire.layouts import ALIGNMENT
from omni_contract.wire.payload import Array
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.inline import INLINE_LIMIT_BYTES
from omni_runtime.connectors.protocol import MemoryPlace
from omni_runtime.connectors.store import PayloadStore
from tests.connectors import payloads
from tests.connectors.backends import BACKENDS, Backend
from tests.connectors.conftest import prepare
from tests.connectors.peer import LIMIT_BYTES, PATIENCE_S, Peer, Refused

pytestmark = pytest.mark.connectors

MIB = 2**20


async def test_a_small_payload_arrives_unchanged(peer: Peer, consumer: ConnectorSet):
    for size_bytes in (0, 1, 63, 64, 65, 4_095, 4_096, 65_000):
        handle = await peer.put("raw", size_bytes)
        assert await consumer.get(handle, PATIENCE_S) == payloads.raw(size_bytes), size_bytes


async def test_a_large_payload_arrives_unchanged(large_peer: Peer, consumer: ConnectorSet):
    for size_bytes in (65_536, MIB - 1, MIB, MIB + 1, 64 * MIB):
        handle = await large_peer.put("raw", size_bytes)
        assert await consumer.get(handle, PATIENCE_S) == payloads.raw(size_bytes), size_bytes


@pytest.mark.parametrize("of", [backend for backend in BACKENDS if backend.carries_a_gibibyte], ids=str)
async def test_a_gibibyte_arrives_unchanged(
    of: Backend, request: pytest.FixtureRequest, memory: MemoryPlace, tmp_path: Path
):
    """By the connectors that carry it: `auto` hands it to one of them, `inline` refuses it by name."""
    prepare(of, request)
    consumer = ConnectorSet("", "consumer", PayloadStore(LIMIT_BYTES), of.specs(**of.sized(1_200)), memory=memory)
    await consumer.open()
    async with Peer(of, memory, tmp_path, settings=of.sized(1_200)) as peer:
        received = await consumer.get(await peer.put("raw", 1024 * MIB), PATIENCE_S)
        assert received == payloads.raw(1024 * MIB)
        del received
        await consumer.close()


async def test_every_dtype_arrives_with_its_shape(peer: Peer, consumer: ConnectorSet):
    assert await consumer.get(await peer.put("every_dtype"), PATIENCE_S) == payloads.every_dtype()


async def test_several_tensors_and_plain_values_arrive_together(peer: Peer, consumer: ConnectorSet):
    assert await consumer.get(await peer.put("several"), PATIENCE_S) == payloads.several()


async def test_what_arrives_is_aligned_and_writable_unless_it_is_read_in_place(
    backend: Backend, peer: Peer, consumer: ConnectorSet
):
    received = await consumer.get(await peer.put("every_dtype"), PATIENCE_S)
    for value in received.values():
        assert isinstance(value, Array)
        assert value.data.readonly == (backend.connector == "shm")
        assert np.frombuffer(value.data, np.uint8).ctypes.data % ALIGNMENT == 0


async def test_a_payload_that_may_be_too_large_for_a_message_says_which_connector_carries_it(
    backend: Backend, peer: Peer, consumer: ConnectorSet
):
    fits = await peer.put("of_encoded_size", INLINE_LIMIT_BYTES)
    assert await consumer.get(fits, PATIENCE_S) == payloads.of_encoded_size(INLINE_LIMIT_BYTES)
    assert (fits.connector == "inline") == (backend.connector in ("inline", "auto"))
    if backend.is_inline:
        with pytest.raises(Refused, match='65,537 bytes is above the 65,536 bytes that connector "inline" carries'):
            await peer.put("of_encoded_size", INLINE_LIMIT_BYTES + 1)
    else:
        handle = await peer.put("of_encoded_size", INLINE_LIMIT_BYTES + 1)
        assert handle.connector == (backend.uses or backend.connector)
        assert await consumer.get(handle, PATIENCE_S) == payloads.of_encoded_size(INLINE_LIMIT_BYTES + 1)


async def test_a_payload_that_is_not_contiguous_is_refused(backend: Backend, consumer: ConnectorSet):
    with_gaps = Array("uint8", (4,), memoryview(bytes(8))[::2])
    with pytest.raises(ValueError, match="not contiguous"):
        await consumer.connector(backend.connector).put("r-1", "a->b", {"x": with_gaps}, PATIENCE_S)


async def test_a_payload_can_be_read_more_than_once_until_it_is_released(peer: Peer, consumer: ConnectorSet):
    handle = await peer.put("several")
    for _ in range(2):
        assert await consumer.get(handle, PATIENCE_S) == payloads.several()


async def test_many_readers_at_once_each_get_their_own(peer: Peer, consumer: ConnectorSet):
    handles = [await peer.put("raw", 1_000, seed) for seed in range(64)]
    received = await asyncio.gather(*(consumer.get(handle, PATIENCE_S) for handle in handles))
    assert received == [payloads.raw(1_000, seed) for seed in range(64)]


async def test_a_damaged_payload_is_a_transfer_error(consumer: ConnectorSet, large_peer: Peer):
    handle = await large_peer.put("raw", 10 * MIB)
    for wrong_bytes in (handle.size_bytes - 1, handle.size_bytes + 1):
        handle.size_bytes = wrong_bytes
        with pytest.raises(TransferError, match=r'edge "a->b": .* bytes'):
            await consumer.get(handle, PATIENCE_S)


async def test_a_handle_that_claims_too_much_is_refused_before_memory_is_taken(
    consumer: ConnectorSet, large_peer: Peer
):
    handle = await large_peer.put("raw", 10 * MIB)
    handle.size_bytes = 2**50
    with pytest.raises(TransferError, match=r"above this process's limit|no payload of .* lies at"):
        await consumer.get(handle, PATIENCE_S)


async def test_a_handle_of_an_unknown_connector_names_those_in_use(peer: Peer, consumer: ConnectorSet):
    handle = await peer.put("several")
    handle.connector = "carrier-pigeon"
    with pytest.raises(TransferError, match='connector "carrier-pigeon" is not one of auto, grpc, inline'):
        await consumer.get(handle, PATIENCE_S)

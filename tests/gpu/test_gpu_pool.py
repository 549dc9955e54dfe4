"""A pool on a GPU: payloads go from the memory of one process's GPU into that of another's, by Mooncake's real engine.

Over TCP, which every machine has; with RDMA nothing but the protocol's name is another.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import torch

from omni_contract.wire.errors import TransferError
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.mooncake.gpu import GpuMemory, load_driver
from omni_runtime.connectors.mooncake.transfer_engine import MooncakeTransferEngine
from omni_runtime.connectors.protocol import MemoryPlace
from omni_runtime.connectors.store import PayloadStore
from tests.connectors import payloads
from tests.connectors.backends import Backend
from tests.connectors.peer import LIMIT_BYTES, PATIENCE_S, Peer, Refused

pytestmark = pytest.mark.gpu

MIB = 2**20
ON_GPU = Backend(
    "mooncake on a GPU",
    "moon-gpu",
    ({"name": "moon-gpu", "mooncakeTransferEngine": {"poolSize": "160Mi", "poolDevice": "cuda", "waitSeconds": 1}},),
)
HERE = MemoryPlace()


@pytest.fixture
async def peer(tmp_path: Path) -> AsyncIterator[Peer]:
    async with Peer(ON_GPU, HERE, tmp_path) as producer:
        yield producer


@pytest.fixture
async def consumer() -> AsyncIterator[ConnectorSet]:
    connectors = ConnectorSet("", "consumer", PayloadStore(LIMIT_BYTES), ON_GPU.specs())
    await connectors.open()
    yield connectors
    await connectors.close()


def engine_of(consumer: ConnectorSet) -> MooncakeTransferEngine:
    connector = consumer.connector(ON_GPU.connector)
    assert isinstance(connector, MooncakeTransferEngine)
    return connector


@pytest.mark.case("runtime:X4")
async def test_payloads_of_all_sizes_arrive_from_gpu_to_gpu(peer: Peer, consumer: ConnectorSet):
    for size_bytes in (0, 1, 65_536, MIB + 1, 64 * MIB):
        handle = await peer.put("raw", size_bytes)
        began_s = time.perf_counter()
        received = await consumer.get(handle, PATIENCE_S)
        print(f"{size_bytes:>12,} bytes in {(time.perf_counter() - began_s) * 1e3:.2f} ms")
        assert received == payloads.raw(size_bytes), size_bytes
        await consumer.release(handle)
    assert engine_of(consumer).counters.detours == 0


async def test_every_dtype_and_plain_values_arrive(peer: Peer, consumer: ConnectorSet):
    assert await consumer.get(await peer.put("every_dtype"), PATIENCE_S) == payloads.every_dtype()
    assert await consumer.get(await peer.put("several"), PATIENCE_S) == payloads.several()
    assert engine_of(consumer).counters.detours == 0


async def test_a_pool_is_in_the_memory_of_the_gpu_and_given_back_with_its_connector():
    torch.cuda.init()
    before, _ = torch.cuda.mem_get_info()
    connectors = ConnectorSet("", "consumer", PayloadStore(LIMIT_BYTES), ON_GPU.specs(poolSize="1Gi"))
    await connectors.open()
    during, _ = torch.cuda.mem_get_info()
    await connectors.close()
    after, _ = torch.cuda.mem_get_info()
    assert before - during >= 1024 * MIB
    assert after - during >= 1024 * MIB


def test_a_copy_into_the_pool_and_out_of_it_waits_for_nothing_that_the_engine_computes():
    memory = GpuMemory(MIB, load_driver())
    data = payloads.filled(MIB - 64)
    matrix = torch.randn(16_384, 16_384, device="cuda", dtype=torch.bfloat16)
    for _ in range(200):
        matrix = matrix @ matrix
    computed = torch.cuda.Event()
    computed.record()
    memory.write(64, data)
    found = memory.read(64, data.nbytes)
    assert not computed.query(), "the engine was too quick for this test; let it compute longer"
    assert found == data
    torch.cuda.synchronize()
    memory.close()


async def test_a_released_payload_is_gone_and_a_full_pool_says_so(peer: Peer, consumer: ConnectorSet):
    held = [await peer.put("raw", 64 * MIB) for _ in range(2)]
    with pytest.raises(Refused, match=r"bytes are in use; raise poolSize or waitSeconds"):
        await peer.put("raw", 64 * MIB)
    await peer.release(held[0])
    with pytest.raises(TransferError, match="not held here"):
        await consumer.get(held[0], PATIENCE_S)
    assert await consumer.get(await peer.put("raw", 64 * MIB, 7), PATIENCE_S) == payloads.raw(64 * MIB, 7)


async def test_a_payload_of_a_producer_that_died_is_an_error(peer: Peer, consumer: ConnectorSet):
    handle = await peer.put("raw", MIB)
    await peer.kill()
    with pytest.raises(TransferError, match="gone or cannot be reached"):
        await asyncio.wait_for(consumer.get(handle, 20), 30)


async def test_large_chunks_of_a_stream_arrive_in_order(peer: Peer, consumer: ConnectorSet):
    handle = await peer.open_stream()
    sizes = [MIB, 1_000, 2 * MIB, 3 * MIB]
    await peer.append(handle, *sizes)
    await peer.end_stream(handle)
    received = [chunk async for chunk in consumer.chunks(handle, PATIENCE_S)]
    assert received == [payloads.raw(size, index) for index, size in enumerate(sizes)]

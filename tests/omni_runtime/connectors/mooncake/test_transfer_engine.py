"""The transfer engine's connector: what is read is the payload itself, or the reader learns why not."""

import asyncio
import ctypes

import pytest

from omni_contract.api.v1alpha1.mooncake import MooncakeTransferEngineConnector
from omni_contract.wire.errors import TransferError
from omni_runtime.connectors.mooncake.gpu import GpuMemory
from omni_runtime.connectors.mooncake.transfer_engine import MooncakeTransferEngine
from omni_runtime.connectors.protocol import ConnectorError
from tests.omni_runtime.connectors.mooncake.fakes import FakeDriver, FakeEngine
from tests.omni_runtime.connectors.mooncake.worlds import BIG, LONG_S, OTHER, context, put, until


class World:
    """One process that is producer and consumer."""

    def __init__(self, gpu: FakeDriver | None = None, **settings: object) -> None:
        made = MooncakeTransferEngineConnector.model_validate({"poolSize": "1Mi", "waitSeconds": 0.05, **settings})
        self.context, self.owner = context(made)
        self.connector = MooncakeTransferEngine(
            self.context, self._engine_of, lambda size_bytes: GpuMemory(size_bytes, gpu)
        )

    def _engine_of(self, settings: MooncakeTransferEngineConnector, host: str) -> FakeEngine:
        self.engine = FakeEngine(settings, host)
        return self.engine


@pytest.fixture
async def world():
    world = World()
    await world.connector.open()
    yield world
    world.engine.gate.set()
    await world.connector.close()


async def test_a_payload_arrives_and_leaves_nothing_behind(world: World):
    handle = await put(world)
    received = await world.connector.get(handle, LONG_S)
    assert received == BIG
    await world.connector.release(handle)
    del received
    assert world.connector.used_bytes == 0
    assert (world.connector.counters.puts, world.connector.counters.gets) == (1, 1)


async def test_the_whole_pool_is_registered_once(world: World):
    await put(world)
    assert [size_bytes for _, size_bytes in world.engine.registered] == [2**20]


@pytest.mark.case("runtime:X1")
async def test_a_read_that_is_refused_is_tried_again(world: World):
    handle = await put(world)
    world.engine.refusals = 2
    assert await world.connector.get(handle, LONG_S) == BIG
    assert (world.connector.counters.retries, world.connector.counters.detours) == (2, 0)


async def test_a_payload_that_cannot_be_read_comes_over_grpc_and_is_counted(world: World):
    handle = await put(world)
    world.engine.refusals, world.owner.answer = 100, OTHER
    assert await world.connector.get(handle, LONG_S) == OTHER
    assert world.connector.counters.detours == 1


async def test_a_payload_that_nobody_has_is_an_error_with_the_owners_reason(world: World):
    handle = await put(world)
    world.engine.refusals = 100
    with pytest.raises(TransferError, match="the owner says that it is gone"):
        await world.connector.get(handle, LONG_S)
    assert world.connector.counters.errors == 1


async def test_a_released_payload_is_never_mistaken_for_the_one_that_took_its_place(world: World):
    old = await put(world)
    await world.connector.release(old)
    new = await put(world, OTHER)
    assert new.locator == old.locator
    with pytest.raises(TransferError, match="the owner says that it is gone"):
        await world.connector.get(old, LONG_S)
    assert world.owner.asked == [old.key]


async def test_a_payload_that_is_released_while_it_is_read_is_not_delivered(world: World):
    handle = await put(world)
    world.engine.after_read = lambda: world.context.store.drop(handle.key)
    with pytest.raises(TransferError, match="the owner says that it is gone"):
        await world.connector.get(handle, LONG_S)


async def test_a_stalled_read_costs_no_more_than_the_deadline_and_the_block_comes_back(world: World):
    handle = await put(world)
    world.engine.gate.clear()
    with pytest.raises(TransferError, match=r"did not deliver within 0\.1 s"):
        await world.connector.get(handle, 0.1)
    await until(lambda: world.connector.health().reason == "reads that no longer matter, but do not end: 1")
    world.engine.gate.set()
    await world.connector.release(handle)
    await until(lambda: world.connector.used_bytes == 0)
    assert world.connector.health().is_healthy


async def test_a_full_pool_names_the_setting_and_holds_nothing(world: World):
    held = [await put(world) for _ in range(10)]
    with pytest.raises(TransferError, match='bytes are in use; raise poolSize or waitSeconds of connector "moon"'):
        await put(world)
    for handle in held:
        await world.connector.release(handle)
    assert world.connector.used_bytes == 0


async def test_an_aborted_put_holds_nothing():
    world = World(poolSize="64Mi")
    await world.connector.open()
    putting = asyncio.create_task(put(world, {"data": bytes(32 * 2**20)}))
    await asyncio.sleep(0)
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    assert (world.connector.used_bytes, len(world.context.store)) == (0, 0)
    await world.connector.close()


def flip(read: tuple[int, int, int]) -> None:
    local, _, size_bytes = read
    if size_bytes > 1_000:
        ctypes.c_ubyte.from_address(local + 1_000).value ^= 1


async def test_a_checksum_finds_damage():
    world = World(checksum=True)
    await world.connector.open()
    handle = await put(world)
    world.engine.after_read = lambda: flip(world.engine.reads[-1])
    with pytest.raises(TransferError, match="checksum"):
        await world.connector.get(handle, LONG_S)
    await world.connector.close()


async def test_a_pool_on_a_gpu_carries_payloads_through_its_own_memory():
    driver = FakeDriver()
    world = World(poolDevice="cuda", protocol="rdma", gpu=driver)
    await world.connector.open()
    assert world.engine.registered == [(address, 2**20) for address in driver.allocated]
    handle = await put(world)
    assert driver.waits
    received = await world.connector.get(handle, LONG_S)
    assert received == BIG
    await world.connector.release(handle)
    assert world.connector.used_bytes == 0
    await world.connector.close()
    assert not driver.allocated


async def test_a_gpu_without_room_for_the_pool_says_so():
    driver = FakeDriver()
    driver.codes["cuMemAlloc_v2"] = 2
    refusal = (
        r"poolDevice cuda fails on the GPU: cuMemAlloc_v2 answers no room for 1,048,576 bytes; use poolDevice: cpu"
    )
    with pytest.raises(ConnectorError, match=refusal):
        await World(poolDevice="cuda", protocol="rdma", gpu=driver).connector.open()


@pytest.mark.case("runtime:X4")
async def test_a_pool_on_a_gpu_is_refused_where_there_is_none():
    made = MooncakeTransferEngineConnector.model_validate({"poolDevice": "cuda"})
    with pytest.raises(ConnectorError, match=r'connector "moon": poolDevice cuda needs a GPU, .*; use poolDevice: cpu'):
        await MooncakeTransferEngine(context(made)[0]).open()

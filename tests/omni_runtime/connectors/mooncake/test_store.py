"""The store's connector: objects go with their release, at their deadline and when their put is given up."""

import asyncio

import pytest

from omni_contract.api.v1alpha1.mooncake import MooncakeStoreConnector
from omni_contract.wire.errors import TransferError
from omni_runtime.connectors.mooncake.segment import taken_bytes
from omni_runtime.connectors.mooncake.store import MooncakeStore
from omni_runtime.connectors.protocol import ConnectorError
from tests.omni_runtime.connectors.mooncake.fakes import FakeStore
from tests.omni_runtime.connectors.mooncake.worlds import BIG, LONG_S, context, put, until

MIB = 2**20


class World:
    def __init__(self, **settings: object) -> None:
        made = {"segmentSize": "16Mi", "bufferSize": "64Mi", "waitSeconds": 0.05, "master": "127.0.0.1:9"}
        self.context, self.owner = context(MooncakeStoreConnector.model_validate(made | settings))
        self.store = FakeStore()
        self.connector = MooncakeStore(self.context, self.store.client, master_answers)


async def master_answers(host: str, port: int) -> bool:
    return True


@pytest.fixture
async def world():
    world = World()
    await world.connector.open()
    yield world
    world.store.gate.set()
    await world.connector.close()


async def test_a_payload_arrives_and_leaves_nothing_behind(world: World):
    handle = await put(world)
    received = await world.connector.get(handle, LONG_S)
    assert received == BIG
    await world.connector.release(handle)
    del received
    await until(lambda: not world.store.objects)
    assert world.connector.used_bytes == 0


async def test_a_payload_leaves_the_store_at_its_deadline(world: World):
    await world.connector.put("r-1", "a->b", BIG, 0.05)
    await until(lambda: not world.store.objects)


async def test_a_payload_that_the_store_lost_is_an_error_with_the_owners_reason(world: World):
    handle = await put(world)
    world.store.objects.clear()
    with pytest.raises(TransferError, match="the owner says that it is gone"):
        await world.connector.get(handle, LONG_S)
    assert world.connector.counters.retries == 0


async def test_a_transfer_that_fails_is_tried_again(world: World):
    handle = await put(world)
    world.store.failures = [-800, -901]
    assert await world.connector.get(handle, LONG_S) == BIG
    assert world.connector.counters.retries == 2


async def test_a_payload_that_is_removed_while_it_is_read_is_not_delivered(world: World):
    handle = await put(world)
    world.store.after_get = world.store.objects.clear
    with pytest.raises(TransferError, match="the owner says that it is gone"):
        await world.connector.get(handle, LONG_S)


async def test_a_put_that_the_store_refuses_says_why_and_holds_nothing(world: World):
    world.store.failures = [-900]
    with pytest.raises(TransferError, match=r"the store does not take it: the master cannot be reached \(code -900\)"):
        await put(world)
    assert (world.connector.used_bytes, len(world.context.store)) == (0, 0)
    await put(world, {"data": bytes(15 * MIB)})


async def test_a_put_that_is_given_up_while_it_runs_is_undone_once_it_has_ended(world: World):
    world.store.gate.clear()
    putting = asyncio.create_task(put(world, {"data": bytes(15 * MIB)}))
    await until(lambda: world.store.entered == 1)
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    world.store.gate.set()
    await until(lambda: world.store.removed == 1)
    await until(lambda: world.connector.used_bytes == 0)
    assert not world.store.objects
    await put(world, {"data": bytes(15 * MIB)})


async def test_a_stalled_store_costs_no_more_than_the_deadline(world: World):
    handle = await put(world)
    world.store.gate.clear()
    with pytest.raises(TransferError, match=r"did not deliver within 0\.1 s"):
        await world.connector.get(handle, 0.1)
    with pytest.raises(TransferError, match=r"the store did not take it within 0\.1 s"):
        await world.connector.put("r-1", "a->b", BIG, 0.1)


async def test_a_full_segment_names_the_setting(world: World):
    await put(world, {"data": bytes(15 * MIB)})
    with pytest.raises(TransferError, match=r"16,777,216 bytes are in use; raise segmentSize or waitSeconds"):
        await put(world, {"data": bytes(15 * MIB)})


async def test_a_handle_with_a_wrong_size_is_refused(world: World):
    handle = await put(world)
    handle.size_bytes -= 1
    with pytest.raises(TransferError, match=r"the store's object has not .* bytes"):
        await world.connector.get(handle, LONG_S)
    assert world.connector.used_bytes == 0


@pytest.mark.parametrize(
    ("size_bytes", "taken"),
    [(0, 0), (1, 1), (15, 15), (17, 18), (1024 * MIB, 1024 * MIB), (1024 * MIB + 1, 1152 * MIB)],
)
def test_an_object_takes_what_the_stores_allocator_gives_it(size_bytes: int, taken: int):
    assert taken_bytes(size_bytes) == taken


async def test_without_a_master_the_process_says_so_after_a_while():
    async def no_master(host: str, port: int) -> bool:
        return False

    world = World()
    connector = MooncakeStore(world.context, world.store.client, no_master, master_start_s=0.05)
    with pytest.raises(ConnectorError, match=r"no mooncake_master at 127\.0\.0\.1:9 in 0 s; start one there"):
        await connector.open()


async def test_a_managed_store_whose_master_nobody_started_is_refused():
    world = World(master=None, managed=True)
    with pytest.raises(ConnectorError, match="nobody started a master"):
        await world.connector.open()

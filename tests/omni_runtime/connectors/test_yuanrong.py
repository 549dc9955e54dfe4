"""The connector over openYuanrong's data system, with a data system of the test's own; a real one needs its worker."""

import asyncio
import subprocess
import sys
import threading

import pytest

from omni_contract.api.v1alpha1.yuanrong import YuanrongConnector
from omni_contract.wire.errors import TransferError
from omni_runtime.connectors.protocol import ConnectorError
from omni_runtime.connectors.yuanrong import DataSystemError, NoSuchObjectError, Yuanrong
from tests.omni_runtime.connectors.mooncake.worlds import BIG, LONG_S, context, until


class FakeDraft:
    def __init__(self, system: "FakeDataSystem", key: str, size_bytes: int) -> None:
        self.memory = memoryview(bytearray(size_bytes))
        self._system = system
        self._key = key

    def publish(self) -> None:
        self._system.publishing += 1
        self._system.before_publish.wait()
        self._system.objects[self._key] = self.memory.toreadonly()


class FakeDataSystem:
    def __init__(self) -> None:
        self.objects: dict[str, memoryview] = {}
        self.lifetimes_s: list[int] = []
        self.failures: list[DataSystemError] = []
        self.deleted = 0
        self.gate = threading.Event()
        self.gate.set()
        self.publishing = 0
        self.before_publish = threading.Event()
        self.before_publish.set()

    def enter(self) -> None:
        self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)

    def create(self, key: str, size_bytes: int, lifetime_s: int) -> FakeDraft:
        self.enter()
        self.lifetimes_s.append(lifetime_s)
        return FakeDraft(self, key, size_bytes)

    def read(self, key: str, timeout_ms: int) -> memoryview:
        self.enter()
        if key not in self.objects:
            raise NoSuchObjectError("Key not found")
        return self.objects[key]

    def delete(self, key: str) -> None:
        self.deleted += 1
        self.objects.pop(key, None)

    def is_healthy(self) -> bool:
        return self.gate.is_set()


class World:
    def __init__(self, **settings: object) -> None:
        self.context, self.owner = context(YuanrongConnector.model_validate(settings))
        self.system = FakeDataSystem()
        self.connector = Yuanrong(self.context, lambda _: self.system)


@pytest.fixture
async def world():
    world = World()
    await world.connector.open()
    yield world
    world.system.gate.set()
    await world.connector.close()


async def put(world: World, payload: dict = BIG, remaining_s: float = LONG_S):
    return await world.connector.put("r-1", "a->b", payload, remaining_s)


async def test_a_payload_arrives_and_leaves_nothing_behind(world: World):
    handle = await put(world)
    received = await world.connector.get(handle, LONG_S)
    assert received == BIG
    assert not received["data"].readonly
    await world.connector.release(handle)
    await until(lambda: not world.system.objects)


async def test_an_object_lives_no_longer_than_its_request_even_if_its_owner_dies(world: World):
    await put(world, remaining_s=12.3)
    assert world.system.lifetimes_s == [13]


async def test_a_payload_that_is_gone_is_an_error_with_the_owners_reason(world: World):
    handle = await put(world)
    world.system.objects.clear()
    with pytest.raises(TransferError, match="the owner says that it is gone"):
        await world.connector.get(handle, LONG_S)
    assert world.connector.counters.errors == 1


async def test_what_the_data_system_refuses_is_told_in_its_words_and_nothing_is_held(world: World):
    world.system.failures = [DataSystemError("code: [Out of memory]")]
    with pytest.raises(TransferError, match=r"the data system does not take it: code: \[Out of memory\]"):
        await put(world)
    assert len(world.context.store) == 0


async def test_a_put_that_is_given_up_while_it_is_published_is_undone_once_it_has_ended(world: World):
    world.system.before_publish.clear()
    putting = asyncio.create_task(put(world))
    await until(lambda: world.system.publishing == 1)
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    world.system.before_publish.set()
    await until(lambda: world.system.deleted == 1)
    assert not world.system.objects


async def test_a_stalled_data_system_costs_no_more_than_the_deadline(world: World):
    handle = await put(world)
    world.system.gate.clear()
    with pytest.raises(TransferError, match=r"did not deliver within 0\.1 s"):
        await world.connector.get(handle, 0.1)
    with pytest.raises(TransferError, match=r"did not take it within 0\.1 s"):
        await put(world, remaining_s=0.1)
    assert world.connector.health().reason == "the worker of the data system does not answer"


async def test_a_handle_with_a_wrong_size_is_refused(world: World):
    handle = await put(world)
    handle.size_bytes += 1
    with pytest.raises(TransferError, match="bytes arrived"):
        await world.connector.get(handle, LONG_S)
    handle.size_bytes = 2**50
    with pytest.raises(TransferError, match="above this process's limit"):
        await world.connector.get(handle, LONG_S)


async def test_without_a_worker_the_process_says_where_it_looked():
    def nobody(settings: YuanrongConnector) -> FakeDataSystem:
        raise DataSystemError("connection refused")

    made, _ = context(YuanrongConnector(port=7))
    with pytest.raises(
        ConnectorError, match=r'"moon" cannot reach a worker .* at 127\.0\.0\.1:7: connection refused; st'
    ):
        await Yuanrong(made, nobody).open()


def test_a_missing_package_is_named():
    code = (
        "import sys\n"
        "sys.modules['yr'] = None\n"
        "from omni_contract.api.v1alpha1.yuanrong import YuanrongConnector\n"
        "from omni_runtime.connectors.protocol import ConnectorError\n"
        "from omni_runtime.connectors.yuanrong import KVDataSystem\n"
        "try:\n"
        "    KVDataSystem(YuanrongConnector())\n"
        "except ConnectorError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'needs the package "openyuanrong-datasystem"' in done.stdout

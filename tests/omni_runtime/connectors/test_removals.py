"""Objects of others' stores are removed beside the event loop; a store in trouble holds nobody up."""

import asyncio
import threading

import pytest

from omni_runtime.connectors.removals import RemovalError, Removals
from omni_runtime.connectors.threads import Threads

LONG_S = 20.0


class Store:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.broken = False

    def remove(self, key: str) -> None:
        self.calls.append(key)
        self.gate.wait()
        if self.broken:
            raise RemovalError("no answer")


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
async def removals(store: Store):
    threads, removed = Threads("test", 1), list[str]()
    made = Removals(threads, store.remove, removed.append)
    made.removed = removed
    yield made
    store.gate.set()
    threads.close()


async def test_each_object_is_removed_once_and_told(store: Store, removals: Removals):
    for key in ("a", "b", "c"):
        removals.add(key)
    await removals.close()
    assert store.calls == ["a", "b", "c"] == removals.removed
    assert removals.trouble == ""


async def test_after_a_failure_the_rest_is_left_and_the_trouble_is_told_until_a_removal_works(
    store: Store, removals: Removals
):
    store.broken = True
    for key in ("a", "b", "c"):
        removals.add(key)
    await removals.close()
    assert store.calls == ["a"]
    assert (removals.trouble, removals.removed) == ("payloads cannot be removed: no answer", ["a", "b", "c"])
    store.broken = False
    removals.add("d")
    await removals.close()
    assert removals.trouble == ""


async def test_removals_that_wait_go_together_while_one_is_under_way(store: Store, removals: Removals):
    store.gate.clear()
    removals.add("a")
    await asyncio.sleep(0)
    for key in ("b", "c"):
        removals.add(key)
    assert removals.removed == []
    store.gate.set()
    await asyncio.wait_for(removals.close(), LONG_S)
    assert removals.removed == ["a", "b", "c"]

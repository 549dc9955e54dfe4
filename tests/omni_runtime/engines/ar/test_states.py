"""The rows of one request as they come from vLLM's process."""

import asyncio

from omni_runtime.engines.ar.states import Inbox

WIDTH = 2


def rows(*values: int) -> memoryview:
    """Rows of two bytes each."""
    return memoryview(bytes(byte for value in values for byte in (value, value)))


def told(layers) -> dict[int, list[int]]:
    return {layer: list(bytes(array.data)[::WIDTH]) for layer, array in layers.items()}


async def test_rows_of_later_positions_wait_for_their_turn():
    inbox = Inbox(1)
    inbox.add(0, {0: rows(1, 2, 3), -1: rows(7, 8, 9)}, "uint8", WIDTH)
    assert told(await inbox.until(2)) == {0: [1, 2], -1: [7, 8]}
    inbox.add(3, {0: rows(4), -1: rows(10)}, "uint8", WIDTH)
    assert told(await inbox.until(3)) == {0: [3], -1: [9]}
    assert told(await inbox.until(4)) == {0: [4], -1: [10]}


async def test_whoever_asks_early_waits():
    inbox = Inbox(1)
    asking = asyncio.create_task(inbox.until(1))
    await asyncio.sleep(0)
    assert not asking.done()
    inbox.add(0, {0: rows(5)}, "uint8", WIDTH)
    assert told(await asking) == {0: [5]}


async def test_positions_that_come_again_count_once():
    inbox = Inbox(1)
    inbox.add(0, {0: rows(1, 2)}, "uint8", WIDTH)
    inbox.add(0, {0: rows(1)}, "uint8", WIDTH)
    inbox.add(0, {0: rows(1, 2, 3)}, "uint8", WIDTH)
    assert told(await inbox.until(3)) == {0: [1, 2, 3]}

"""The rows of one request as they come from vLLM's process."""

import asyncio

from omni_runtime.engines.ar.inbox import MOST_PARTS, Inbox

WIDTH = 2


KIND = "uint8", WIDTH
LAYERS = 0, -1


def rows(*values: int) -> memoryview:
    """Rows of two bytes each."""
    return memoryview(bytes(byte for value in values for byte in (value, value)))


def told(layers) -> dict[int, list[int]]:
    return {layer: list(bytes(array.data)[::WIDTH]) for layer, array in layers.items()}


async def test_rows_of_later_positions_wait_for_their_turn():
    inbox = Inbox(LAYERS)
    inbox.add(0, 3, [rows(1, 2, 3), rows(7, 8, 9)], KIND)
    assert told(await inbox.until(2)) == {0: [1, 2], -1: [7, 8]}
    inbox.add(3, 1, [rows(4), rows(10)], KIND)
    assert told(await inbox.until(3)) == {0: [3], -1: [9]}
    assert told(await inbox.until(4)) == {0: [4], -1: [10]}


async def test_whoever_asks_early_waits():
    inbox = Inbox((0,))
    asking = asyncio.create_task(inbox.until(1))
    await asyncio.sleep(0)
    assert not asking.done()
    inbox.add(0, 1, [rows(5)], KIND)
    assert told(await asking) == {0: [5]}


async def test_positions_that_come_again_count_once():
    inbox = Inbox((0,))
    inbox.add(0, 2, [rows(1, 2)], KIND)
    inbox.add(0, 1, [rows(1)], KIND)
    inbox.add(0, 3, [rows(1, 2, 3)], KIND)
    assert told(await inbox.until(3)) == {0: [1, 2, 3]}


async def test_rows_of_many_steps_wait_for_a_request_that_is_slow():
    inbox, steps = Inbox(LAYERS), range(3 * MOST_PARTS)
    for step in steps:
        inbox.add(step, 1, [rows(step), rows(100 + step)], KIND)
    assert told(await inbox.until(2)) == {0: [0, 1], -1: [100, 101]}
    assert told(await inbox.until(len(steps))) == {0: list(steps)[2:], -1: [100 + step for step in steps][2:]}

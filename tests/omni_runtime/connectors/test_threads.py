"""Blocking calls run beside the event loop, within a deadline, and what they return late is not lost."""

import asyncio
import threading

import pytest

from omni_runtime.connectors.threads import Threads

LONG_S = 20.0


@pytest.fixture
def threads():
    pool = Threads("test", 1)
    yield pool
    pool.close()


def not_late(_: object) -> None:
    raise AssertionError("nobody left before the call had ended")


async def test_a_call_returns_its_result_or_raises_its_error(threads: Threads):
    assert await threads.run(lambda: 7, not_late) == 7
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0, not_late)


async def test_a_call_that_takes_too_long_is_left_and_its_result_handed_on(threads: Threads):
    gate, late = threading.Event(), asyncio.get_running_loop().create_future()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await threads.run(lambda: gate.wait() and "block", late.set_result)
    gate.set()
    future = await asyncio.wait_for(late, LONG_S)
    assert future.result() == "block"


async def test_a_cancelled_caller_leaves_at_once(threads: Threads):
    gate, late = threading.Event(), asyncio.get_running_loop().create_future()
    running = asyncio.create_task(threads.run(lambda: gate.wait() and 1, late.set_result))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    gate.set()
    assert (await asyncio.wait_for(late, LONG_S)).done()


async def test_a_call_that_never_got_a_thread_never_runs(threads: Threads):
    gate, ran, late = threading.Event(), list[int](), asyncio.get_running_loop().create_future()
    first = asyncio.create_task(threads.run(lambda: gate.wait() and 1, not_late))
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await threads.run(lambda: ran.append(1), late.set_result)
    assert (await asyncio.wait_for(late, LONG_S)).cancelled()
    gate.set()
    assert await first == 1 and ran == []

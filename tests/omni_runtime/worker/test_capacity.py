"""Slots and the short queue before them."""

import asyncio

import pytest

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.worker.capacity import Capacity


def capacity(max_in_flight: int = 2) -> Capacity:
    return Capacity(max_in_flight, lambda: None)


async def test_twice_as_many_as_run_are_admitted_and_then_none():
    full = capacity(2)
    for _ in range(4):
        full.admit()
    with pytest.raises(OmniError) as caught:
        full.admit()
    assert (caught.value.code, caught.value.is_retryable) == (ErrorCode.OVERLOADED, True)


async def test_giving_back_twice_frees_one_place_only():
    full = capacity(1)
    first, _ = full.admit(), full.admit()
    first.give_back()
    first.give_back()
    full.admit()
    with pytest.raises(OmniError):
        full.admit()


async def test_those_who_wait_get_their_slot_in_the_order_of_their_coming():
    slots, order = capacity(1), []

    async def work(name: str) -> None:
        async with slots:
            order.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(*(work(f"w-{i}") for i in range(5)))
    assert order == [f"w-{i}" for i in range(5)] and slots.running == 0


async def test_a_waiting_request_that_is_cancelled_takes_no_slot():
    slots = capacity(1)
    async with slots:
        waiting = asyncio.create_task(slots.__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    async with asyncio.timeout(5):
        async with slots:
            assert slots.running == 1
    assert slots.running == 0


async def test_it_is_idle_only_when_nothing_is_admitted():
    slots = capacity()
    await asyncio.wait_for(slots.wait_idle(), 5)
    admission = slots.admit()
    idle = asyncio.create_task(slots.wait_idle())
    await asyncio.sleep(0)
    assert not idle.done()
    admission.give_back()
    await asyncio.wait_for(idle, 5)

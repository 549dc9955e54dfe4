"""The line of models that wait to be looked at."""

import asyncio

import pytest

from omni_operator.kube.queue import Urgency, WorkQueue
from omni_operator.objects import ModelKey

A, B = ModelKey("team", "a"), ModelKey("team", "b")
SOON_S = 2.0


@pytest.fixture
def queue() -> WorkQueue:
    return WorkQueue(pause_s=0.01)


async def taken(queue: WorkQueue) -> ModelKey:
    async with asyncio.timeout(SOON_S):
        return await queue.take()


async def is_empty_for(queue: WorkQueue, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await queue.take()
    except TimeoutError:
        return True
    return False


@pytest.mark.case("operator:A03")
async def test_a_storm_of_events_is_one_look(queue: WorkQueue) -> None:
    for _ in range(1000):
        queue.wake(A)
    assert await taken(queue) == A
    queue.done(A)
    assert await is_empty_for(queue, 0.05)


async def test_models_come_in_the_order_in_which_they_were_woken(queue: WorkQueue) -> None:
    queue.wake(A)
    queue.wake(B)
    queue.wake(A)
    assert [await taken(queue), await taken(queue)] == [A, B]


async def test_a_model_woken_during_its_look_is_looked_at_again(queue: WorkQueue) -> None:
    queue.wake(A)
    await taken(queue)
    queue.wake(A)
    assert await is_empty_for(queue, 0.02)
    queue.done(A)
    assert await taken(queue) == A


async def test_a_model_woken_during_its_rest_is_looked_at_after_it(queue: WorkQueue) -> None:
    queue.wake(A)
    await taken(queue)
    queue.done(A)
    queue.wake(A)
    assert await taken(queue) == A


@pytest.mark.case("operator:A01")
async def test_a_model_that_is_at_rest_is_not_looked_at(queue: WorkQueue) -> None:
    queue.wake(A)
    await taken(queue)
    queue.done(A)
    assert await is_empty_for(queue, 0.05)
    assert queue._entries == {}


async def test_a_failed_model_comes_again_by_itself(queue: WorkQueue) -> None:
    queue.wake(A)
    await taken(queue)
    queue.failed(A)
    assert await is_empty_for(queue, 0.1)
    assert await taken(queue) == A


async def test_an_event_ends_the_wait_after_a_failure(queue: WorkQueue) -> None:
    queue.wake(A)
    await taken(queue)
    queue.failed(A, at_least_s=60)
    queue.wake(A)
    assert await taken(queue) == A


@pytest.mark.case("operator:M08")
async def test_the_server_s_word_on_when_to_ask_again_is_honoured(queue: WorkQueue) -> None:
    queue.wake(A)
    await taken(queue)
    queue.failed(A, at_least_s=60)
    assert await is_empty_for(queue, 0.8)


@pytest.mark.case("operator:M09")
@pytest.mark.case("operator:C27")
async def test_a_model_that_takes_long_keeps_no_other_waiting(queue: WorkQueue) -> None:
    queue.wake(A)
    await taken(queue)
    queue.wake(B)
    assert await taken(queue) == B


async def test_what_a_user_said_comes_before_what_happened(queue: WorkQueue) -> None:
    queue.wake(A)
    queue.wake(B, Urgency.SAID)
    assert [await taken(queue), await taken(queue)] == [B, A]


async def test_a_model_in_line_moves_forward_when_its_user_says_something(queue: WorkQueue) -> None:
    queue.wake(A)
    queue.wake(B)
    queue.wake(B, Urgency.SAID)
    assert [await taken(queue), await taken(queue)] == [B, A]
    queue.done(A)
    queue.done(B)
    assert await is_empty_for(queue, 0.05)


async def test_urgency_outlasts_the_look_in_which_it_came(queue: WorkQueue) -> None:
    queue.wake(A)
    await taken(queue)
    queue.wake(A, Urgency.SAID)
    queue.wake(A)
    queue.done(A)
    await asyncio.sleep(0.02)
    queue.wake(B)
    assert await taken(queue) == A

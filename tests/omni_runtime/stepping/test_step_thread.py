"""The step thread with work of plain Python; what it does with torch is tested in tests/models."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from itertools import cycle
from math import inf

import pytest
import pytest_asyncio

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.engines.protocol import EngineDiedError
from omni_runtime.stepping.step_thread import Mailbox, StepThread, Ticket

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="none")


def translate(error: Exception) -> Exception:
    return error if isinstance(error, OmniError) else OmniError(ErrorCode.STAGE_FAILED, str(error))


@pytest_asyncio.fixture
async def thread() -> AsyncIterator[StepThread]:
    thread = StepThread("steps", prepare=lambda: None, translate=translate)
    thread.start()
    yield thread
    await thread.stop()


class Gate:
    """Work that waits in its first turn, so that a test decides what queues up behind it."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def work(self) -> Iterator[None]:
        self.entered.set()
        assert self.opened.wait(10)
        yield None


def counting(name: str, turns: int, log: list[str]) -> Iterator[int | None]:
    for turn in range(turns):
        if turn > 0:
            yield None
        log.append(name)
        yield turn


async def items(ticket: Ticket[int]) -> list[int]:
    return [item async for item in ticket.items()]


async def test_items_come_in_order_and_then_the_end(thread):
    assert await items(thread.submit(counting("a", 5, []))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("result", [7, None])
async def test_a_call_has_a_turn_of_its_own_on_the_thread_and_its_result_comes_back(thread, result):
    ran_on: list[str] = []

    def call() -> int | None:
        ran_on.append(threading.current_thread().name)
        return result

    assert await thread.call(call) == result
    assert ran_on == ["steps"]


async def test_a_call_that_fails_raises_and_one_that_nobody_would_run_does_not_wait(thread):
    with pytest.raises(OmniError, match="by zero"):
        await thread.call(lambda: 1 // 0)
    await thread.stop()
    with pytest.raises(EngineDiedError, match="the thread steps has ended"):
        await thread.call(lambda: 1)


async def test_one_turn_may_hand_out_no_item_or_many(thread):
    assert await items(thread.submit(iter([None, 1, 2, None, None, 3]))) == [1, 2, 3]


async def test_the_end_comes_with_the_last_turn(thread):
    """Not a round later, which among many long requests is many steps."""
    gate, log = Gate(), []
    blocker = thread.submit(gate.work())
    short, long = thread.submit(counting("s", 1, log)), thread.submit(counting("l", 3, log))
    log_at_end: list[str] = []
    short.post_end = lambda error: log_at_end.extend(log) or Ticket.post_end(short, error)
    gate.opened.set()
    await asyncio.gather(*(ticket.ended() for ticket in (blocker, short, long)))
    assert log_at_end == ["s"]


async def test_work_runs_on_the_one_thread(thread):
    names = await items(thread.submit(threading.current_thread().name for _ in range(2)))
    assert names == ["steps", "steps"]


async def test_work_takes_turns(thread):
    gate, log = Gate(), []
    blocker = thread.submit(gate.work())
    tickets = [thread.submit(counting(name, turns, log)) for name, turns in (("a", 4), ("b", 1), ("c", 4))]
    gate.opened.set()
    await asyncio.gather(items(blocker), *(items(ticket) for ticket in tickets))
    assert "".join(log) == "abcacacac"


async def test_a_failure_ends_its_own_work_only(thread):
    def failing() -> Iterator[int | None]:
        yield None
        raise ZeroDivisionError("by design")

    gate, log = Gate(), []
    blocker = thread.submit(gate.work())
    bad, good = thread.submit(failing()), thread.submit(counting("good", 3, log))
    gate.opened.set()
    with pytest.raises(OmniError, match="by design") as failed:
        await items(bad)
    assert failed.value.code is ErrorCode.STAGE_FAILED
    assert await items(good) == [0, 1, 2]
    await blocker.ended()


async def test_an_unexpected_failure_is_logged_in_the_context_of_its_submitter(thread, caplog):
    request_ids: list[str] = []
    caplog.handler.addFilter(lambda record: request_ids.append(REQUEST_ID.get()) or True)
    REQUEST_ID.set("request-1")
    ticket = thread.submit(1 // zero for zero in [0])
    REQUEST_ID.set("another")
    with pytest.raises(OmniError):
        await items(ticket)
    assert request_ids == ["request-1"]


async def test_cancelled_work_is_dropped_before_the_next_turn_of_anybody(thread):
    closed: list[str] = []

    def endless() -> Iterator[int | None]:
        try:
            yield 0
            while True:
                yield None
        finally:
            closed.append("endless")

    gate = Gate()
    endless_ticket = thread.submit(endless())
    await anext(endless_ticket.items())
    blocker = thread.submit(gate.work())
    await asyncio.to_thread(gate.entered.wait, 10)
    others = [thread.submit(len(closed) for _ in range(1)) for k in range(3)]
    thread.cancel(endless_ticket)
    gate.opened.set()
    await endless_ticket.ended()
    assert closed == ["endless"]
    assert [await items(other) for other in others] == [[1], [1], [1]]
    await blocker.ended()


async def test_cancelling_ended_work_changes_nothing(thread):
    ticket = thread.submit(counting("a", 1, []))
    assert await items(ticket) == [0]
    thread.cancel(ticket)
    assert await items(thread.submit(counting("b", 1, []))) == [0]


async def test_stopping_cancels_what_is_left_and_ends_the_thread():
    thread = StepThread("steps", prepare=lambda: None, translate=translate)
    thread.start()
    ticket = thread.submit(cycle([0, None]))
    await anext(ticket.items())
    await thread.stop()
    assert not thread.is_alive
    await ticket.ended()
    with pytest.raises(OmniError) as ended:
        await items(ticket)
    assert ended.value.code is ErrorCode.CANCELLED


async def test_work_for_a_thread_that_takes_no_more_turns_is_refused_rather_than_kept():
    thread = StepThread("steps", prepare=lambda: None, translate=translate)
    thread.start()
    await thread.stop()
    with pytest.raises(EngineDiedError, match="the thread steps has ended"):
        thread.submit(iter(()))


async def test_stopping_a_thread_that_never_started_is_fine():
    await StepThread("steps", prepare=lambda: None, translate=translate).stop()


async def test_stopping_twice_is_fine(thread):
    await thread.stop()
    await thread.stop()
    assert not thread.is_alive


async def test_the_heartbeat_ages_only_within_a_turn(thread):
    gate = Gate()
    assert thread.heartbeat_age_s() == 0
    ticket = thread.submit(gate.work())
    await asyncio.to_thread(gate.entered.wait, 10)
    first = thread.heartbeat_age_s()
    assert 0 <= first <= thread.heartbeat_age_s() < 10
    gate.opened.set()
    await ticket.ended()
    assert thread.heartbeat_age_s() == 0


async def test_a_dead_thread_has_no_heartbeat():
    thread = StepThread("steps", prepare=lambda: None, translate=translate)
    assert thread.heartbeat_age_s() == inf


async def test_busy_time_is_final_when_the_work_has_ended(thread):
    ticket = thread.submit(counting("a", 3, []))
    await items(ticket)
    before = ticket.busy_s
    await items(thread.submit(counting("b", 1, [])))
    assert 0 < before == ticket.busy_s


async def test_a_mailbox_wakes_the_loop_once_for_many_calls():
    loop, wakes, heard = asyncio.get_running_loop(), [], []
    call_soon = loop.call_soon_threadsafe

    class Loop:
        def call_soon_threadsafe(self, call):
            wakes.append(call)
            call_soon(call)

    mailbox = Mailbox(Loop())
    for number in range(100):
        mailbox.post(lambda number=number: heard.append(number))
    done = asyncio.Event()
    mailbox.post(done.set)
    await asyncio.wait_for(done.wait(), 5)
    assert (len(wakes), heard) == (1, list(range(100)))

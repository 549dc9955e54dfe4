"""Deadlines that share a timer: each passes once, not before its time, unless it is removed."""

import asyncio
import time

from omni_runtime.deadlines import TICK_S, Deadlines

PATIENCE_S = 5.0


class Passed:
    """Who passed, and when; `wait` returns with the first so many."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._changed = asyncio.Event()

    def __call__(self, name: str) -> None:
        assert name not in self.times
        self.times[name] = time.monotonic()
        self._changed.set()

    async def wait(self, *names: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not self.times.keys() >= set(names):
                self._changed.clear()
                await self._changed.wait()


async def test_deadlines_pass_in_their_order_and_none_before_its_time() -> None:
    passed = Passed()
    deadlines, began_s = Deadlines(passed), time.monotonic()
    for name, remaining_s in (("late", 3 * TICK_S), ("at once", 0.0), ("gone", -1.0), ("soon", TICK_S)):
        deadlines.add(name, remaining_s)

    await passed.wait("late")

    assert sorted(passed.times, key=lambda name: passed.times[name])[2:] == ["soon", "late"]
    assert passed.times["soon"] - began_s >= TICK_S * 0.9 and passed.times["late"] - began_s >= 3 * TICK_S * 0.9


async def test_what_was_removed_does_not_pass() -> None:
    passed = Passed()
    deadlines = Deadlines(passed)
    tick = deadlines.add("removed", 0.0)
    deadlines.add("kept", 0.0)
    deadlines.remove("removed", tick)

    await passed.wait("kept")

    assert list(passed.times) == ["kept"]
    deadlines.remove("kept", tick)


async def test_who_passes_may_remove_others_of_the_same_tick_and_add_more() -> None:
    passed, ticks = Passed(), dict[str, int]()

    def one_of_two(name: str) -> None:
        passed(name)
        if name in ticks:
            other = "b" if name == "a" else "a"
            deadlines.remove(other, ticks[other])
            deadlines.add("after", 0.0)

    deadlines = Deadlines(one_of_two)
    now_s = time.monotonic()
    in_one_tick_s = (int(now_s / TICK_S) + 1.5) * TICK_S - now_s
    ticks.update({name: deadlines.add(name, in_one_tick_s) for name in ("a", "b")})

    await passed.wait("after")

    assert len(passed.times) == 2


async def test_the_next_deadline_is_waited_for_whatever_was_added_before() -> None:
    passed = Passed()
    deadlines = Deadlines(passed)
    deadlines.add("in an hour", 3600.0)
    deadlines.add("now", 0.0)

    await passed.wait("now")

    assert list(passed.times) == ["now"]

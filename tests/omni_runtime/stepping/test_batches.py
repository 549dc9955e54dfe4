"""Who shares the next step of an engine that serves several requests at once."""

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from omni_runtime.stepping.batches import Batches


@dataclass
class Seat:
    name: str
    batch_key: str = ""
    is_ready: bool = True
    ready_since: float | None = None

    def begin(self) -> None: ...

    def release(self) -> None: ...

    def fail(self, error: BaseException) -> None: ...


async def names(batches: Batches[Seat]) -> str:
    return "".join(seat.name for seat in await batches.next())


async def test_a_step_takes_those_that_are_ready_and_go_together_with_the_first_of_them():
    batches: Batches[Seat] = Batches(size=8, timeout_s=0)
    seats = [Seat("a", is_ready=False), Seat("b", "mel"), Seat("c", "sound"), Seat("d", "mel")]
    with ExitStack() as taking:
        for seat in seats:
            taking.enter_context(batches.taking(seat))
        assert [await names(batches) for _ in range(3)] == ["bd", "c", "bd"]


async def test_whoever_had_a_step_is_behind_those_that_had_none():
    batches: Batches[Seat] = Batches(size=2, timeout_s=0)
    with ExitStack() as taking:
        for name in "abc":
            taking.enter_context(batches.taking(Seat(name)))
        assert [await names(batches) for _ in range(3)] == ["ab", "ca", "bc"]


@pytest.mark.case("runtime:S23")
async def test_no_stream_starves_behind_others():
    """Of 64 that are always ready, each has every eighth step of eight."""
    batches: Batches[Seat] = Batches(size=8, timeout_s=0)
    with ExitStack() as taking:
        for number in range(64):
            taking.enter_context(batches.taking(Seat(chr(number + 32))))
        steps = [await names(batches) for _ in range(80)]
    for name in steps[0]:
        had = [number for number, step in enumerate(steps) if name in step]
        assert had == list(range(0, 80, 8))


async def test_who_waits_for_its_input_takes_part_in_no_step_until_it_has_come():
    batches: Batches[Seat] = Batches(size=2, timeout_s=0)
    parked, other = Seat("parked", is_ready=False), Seat("other")
    with batches.taking(parked), batches.taking(other):
        assert [await names(batches) for _ in range(2)] == ["other", "other"]
        other.is_ready = False
        waiting = asyncio.create_task(names(batches))
        await asyncio.sleep(0)
        assert not waiting.done()
        parked.is_ready = True
        batches.changed()
        assert await waiting == "parked"


@pytest.mark.parametrize(("size", "comes"), [(1, "a"), (2, "ab")])
async def test_a_full_batch_does_not_wait_for_more(size: int, comes: str):
    batches: Batches[Seat] = Batches(size, timeout_s=3600)
    now = asyncio.get_running_loop().time()
    with batches.taking(Seat("a", ready_since=now)), batches.taking(Seat("b", ready_since=now)):
        assert await names(batches) == comes


async def test_one_that_is_alone_waits_for_others_no_longer_than_it_may():
    batches: Batches[Seat] = Batches(size=2, timeout_s=10)
    waited = asyncio.get_running_loop().time() - 10
    with batches.taking(Seat("a", ready_since=waited)):
        assert await names(batches) == "a"

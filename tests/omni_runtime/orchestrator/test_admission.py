"""When a request is refused instead of queued, and whose."""

from collections import Counter

import pytest

from omni_runtime.orchestrator.admission import OverloadedError, Queue, admit


def queue_of(waiting: int, most: int, free_slots: int = 0, drain_s: float = 1, **of_tenant: int) -> Queue:
    return Queue(waiting, free_slots, most, drain_s, of_tenant)


@pytest.mark.parametrize(
    ("waiting", "arriving", "free", "most"),
    [(0, 1, 0, 1), (0, 1, 1, 0), (0, 10, 4, 6), (5, 1, 0, 6), (255, 1, 0, 256)],
)
def test_what_fits_is_let_in(waiting: int, arriving: int, free: int, most: int) -> None:
    assert admit(queue_of(waiting, most, free), "", arriving) == []


@pytest.mark.parametrize(
    ("waiting", "arriving", "free", "most"),
    [(0, 1, 0, 0), (6, 1, 0, 6), (0, 10, 4, 5), (5, 2, 0, 6)],
)
def test_what_does_not_fit_is_refused(waiting: int, arriving: int, free: int, most: int) -> None:
    with pytest.raises(OverloadedError, match=f"{waiting} requests wait already and the queue takes {most}"):
        admit(queue_of(waiting, most, free), "", arriving)


def test_nobody_overtakes_those_who_wait() -> None:
    with pytest.raises(OverloadedError):
        admit(queue_of(waiting=2, most=2, free_slots=3), "", arriving=1)


@pytest.mark.parametrize(("drain_s", "retry_after_s"), [(0.0, 1), (7.4, 7), (1e6, 60)])
def test_the_time_to_come_back_follows_the_queue_within_bounds(drain_s: float, retry_after_s: int) -> None:
    with pytest.raises(OverloadedError) as caught:
        admit(queue_of(1, 1, drain_s=drain_s), "", 1)
    assert caught.value.retry_after_s == retry_after_s


def test_one_tenant_may_fill_the_queue_while_nobody_else_needs_it() -> None:
    assert admit(queue_of(255, 256, red=255), "red", 1) == []
    with pytest.raises(OverloadedError):
        admit(queue_of(256, 256, red=256), "red", 1)


def test_a_tenant_with_less_waiting_pushes_out_those_with_the_most() -> None:
    full = queue_of(11, 11, red=6, green=5)
    assert admit(full, "blue", 1) == ["red"]
    assert Counter(admit(full, "blue", 3)) == {"red": 2, "green": 1}


@pytest.mark.parametrize("arriving", [1, 2])
def test_a_tenant_with_its_share_pushes_nobody_out(arriving: int) -> None:
    with pytest.raises(OverloadedError):
        admit(queue_of(10, 10, red=5, green=5), "green", arriving)


def test_requests_that_a_stage_already_works_on_are_not_pushed_out() -> None:
    with pytest.raises(OverloadedError):
        admit(queue_of(10, 10, red=0), "green", 1)

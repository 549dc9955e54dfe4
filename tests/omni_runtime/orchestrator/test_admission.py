"""When a request is refused instead of queued."""

import pytest

from omni_runtime.orchestrator.admission import OverloadedError, check_queue


@pytest.mark.parametrize(
    ("waiting", "arriving", "free", "most"),
    [(0, 1, 0, 1), (0, 1, 1, 0), (0, 10, 4, 6), (5, 1, 0, 6), (255, 1, 0, 256)],
)
def test_what_fits_is_let_in(waiting: int, arriving: int, free: int, most: int) -> None:
    check_queue(waiting, arriving, free, most, drain_s=1)


@pytest.mark.parametrize(
    ("waiting", "arriving", "free", "most"),
    [(0, 1, 0, 0), (6, 1, 0, 6), (0, 10, 4, 5), (5, 2, 0, 6)],
)
def test_what_does_not_fit_is_refused(waiting: int, arriving: int, free: int, most: int) -> None:
    with pytest.raises(OverloadedError, match=f"{waiting} requests wait already and the queue takes {most}"):
        check_queue(waiting, arriving, free, most, drain_s=1)


def test_nobody_overtakes_those_who_wait() -> None:
    with pytest.raises(OverloadedError):
        check_queue(waiting=2, arriving=1, free=3, most=2, drain_s=1)


@pytest.mark.parametrize(("drain_s", "retry_after_s"), [(0.0, 1), (7.4, 7), (1e6, 60)])
def test_the_time_to_come_back_follows_the_queue_within_bounds(drain_s: float, retry_after_s: int) -> None:
    with pytest.raises(OverloadedError) as caught:
        check_queue(1, 1, 0, 1, drain_s)
    assert caught.value.retry_after_s == retry_after_s

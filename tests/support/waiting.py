"""Waiting for what cannot be awaited, as it happens in another process: look again and again until a deadline."""

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

POLL_S = 0.1
PATIENCE_S = 60.0

T = TypeVar("T")


def looks(look: Callable[[], T], within_s: float, poll_s: float = POLL_S) -> Iterator[T]:
    """What is seen each time; the last look comes after the deadline, so that a slow machine gets one too."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        yield look()
        time.sleep(poll_s)
    yield look()


def eventually(what: str, look: Callable[[], T], within_s: float = PATIENCE_S, poll_s: float = POLL_S) -> T:
    """The first true answer; fails with the words of `what` when the time is up."""
    for answer in looks(look, within_s, poll_s):
        if answer:
            return answer
    raise AssertionError(f"not within {within_s:g} s: {what}; last seen: {answer!r}")


def becomes(is_so: Callable[[], bool], within_s: float) -> bool:
    """Whether it is so in time."""
    return any(looks(is_so, within_s))


def settled(look: Callable[[], T], is_right: Callable[[T], bool], within_s: float) -> T:
    """The first right answer, or the last wrong one for the caller to show."""
    for answer in looks(look, within_s):
        if is_right(answer):
            break
    return answer

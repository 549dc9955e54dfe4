"""Waiting for what cannot be awaited, as it happens in another process."""

import time
from collections.abc import Callable

POLL_S = 0.2


def wait_until(what: str, is_so: Callable[[], object], timeout_s: float) -> None:
    """Until the answer is true; fails with the words of `what` when the time is up."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        time.sleep(POLL_S)

"""One line per step, with the time it took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def step(text: str) -> Iterator[None]:
    begun = time.monotonic()
    yield
    line(text, time.monotonic() - begun)


def line(text: str, seconds: float = 0.0) -> None:
    print(f"{seconds:7.1f} s  {text}", flush=True)

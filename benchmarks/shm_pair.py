"""What all contenders of `benchmarks.shm` do alike: two processes, one transfer at a time, every byte read and checked.

Runs in the peer's environment, too, so it needs nothing but numpy.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

MARK = "transfer "
"""Begins our lines: libraries print lines of their own."""


def source(size_bytes: int) -> Bytes:
    return np.random.default_rng(size_bytes).integers(0, 256, size_bytes, dtype=np.uint8)


def total(data: Bytes) -> int:
    """Reads every byte."""
    return int(data.view(np.uint64).sum(dtype=np.uint64))


def say(message: Any) -> None:
    print(MARK + json.dumps(message), flush=True)


def heard(lines: Iterator[str]) -> Any:
    """The next message; EOFError when the other side has ended."""
    for line in lines:
        if line.startswith(MARK):
            return json.loads(line.removeprefix(MARK))
    raise EOFError


def produce(put: Callable[[Bytes], Any], ask_consumer: Callable[[Any], dict[str, Any]]) -> None:
    """For each size that comes in: a transfer, and its times in seconds. `put` returns what the consumer is told."""
    sources: dict[int, tuple[Bytes, int]] = {}
    for line in sys.stdin:
        size_bytes = int(line)
        data, expected = sources.setdefault(size_bytes, (found := source(size_bytes), total(found)))
        began_s = time.perf_counter()
        told = put(data)
        put_s = time.perf_counter() - began_s
        answer = ask_consumer(told)
        end_s = time.perf_counter() - began_s
        if answer["total"] != expected:
            raise SystemExit(f"{size_bytes} bytes did not arrive unchanged")
        say({"put_s": put_s, "get_s": answer["get_s"], "end_s": end_s})


def got(get: Callable[[Any], Bytes], told: Any) -> dict[str, Any]:
    """A consumer's answer: what it read, and how long that took."""
    began_s = time.perf_counter()
    read = total(get(told))
    return {"get_s": time.perf_counter() - began_s, "total": read}

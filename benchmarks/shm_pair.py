"""What all contenders of `benchmarks.shm` do alike: two processes, one transfer at a time, every byte read and checked.

The consumer hears of a payload through a pipe, the same for all. Both processes tell the time by the same clock, so the
consumer's way back to the producer is no part of any figure. Runs in the peer's environment, too, so it needs nothing
but numpy.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
Pipe: TypeAlias = "Connection[Any, Any]"

MARK = "transfer "
"""Begins our lines: libraries print lines of their own."""

now_s = time.monotonic
"""The same in all processes of a host."""


@dataclass(frozen=True)
class Arrival:
    """When the consumer heard of a payload and when it had read it; what it read."""

    heard_s: float
    read_s: float
    total: int


@dataclass(frozen=True)
class Transfer:
    """Seconds: to put, to get with every byte read, and from the put's beginning until every byte is read."""

    put_s: float
    get_s: float
    end_s: float


class Sources:
    """What is sent, by size, with what its reader must find."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Bytes, int]] = {}

    def of(self, size_bytes: int) -> tuple[Bytes, int]:
        if size_bytes not in self._made:
            data = np.random.default_rng(size_bytes).integers(0, 256, size_bytes, dtype=np.uint8)
            self._made[size_bytes] = data, total(data)
        return self._made[size_bytes]


def total(data: Bytes) -> int:
    """Reads every byte."""
    return int(data.view(np.uint64).sum(dtype=np.uint64))


def transfer_of(began_s: float, put_s: float, expected: int, arrival: Arrival) -> Transfer:
    if arrival.total != expected:
        raise SystemExit("a payload did not arrive unchanged")
    return Transfer(put_s - began_s, arrival.read_s - arrival.heard_s, arrival.read_s - began_s)


def say(message: Any) -> None:
    print(MARK + json.dumps(message), flush=True)


def say_transfer(transfer: Transfer) -> None:
    say(asdict(transfer))


def heard(lines: Iterator[str]) -> Any:
    """The next message; EOFError when the other side has ended."""
    for line in lines:
        if line.startswith(MARK):
            return json.loads(line.removeprefix(MARK))
    raise EOFError


@contextmanager
def consumer(consume: Callable[..., None], *arguments: Any) -> Iterator[tuple[Pipe, Pipe]]:
    """Another process that runs `consume(to hear from, to answer to, *arguments)`; our ends of both pipes."""
    context = get_context("spawn")
    hears, tells = context.Pipe(duplex=False)
    answers, answering = context.Pipe(duplex=False)
    process = context.Process(target=consume, args=(hears, answering, *arguments), daemon=True)
    process.start()
    hears.close()
    answering.close()
    try:
        yield tells, answers
    finally:
        tells.close()
        process.join()


def produce(put: Callable[[Bytes], Any], tells: Pipe, answers: Pipe) -> None:
    """For each size that comes in: a transfer, and its times. `put` returns what the consumer is told."""
    sources = Sources()
    say("ready")
    for line in sys.stdin:
        data, expected = sources.of(int(line))
        began_s = now_s()
        told = put(data)
        put_s = now_s()
        tells.send(told)
        say_transfer(transfer_of(began_s, put_s, expected, answers.recv()))


def consume_with(get: Callable[[Any], Bytes], hears: Pipe, answers: Pipe) -> None:
    """Until the producer has ended."""
    while True:
        try:
            told = hears.recv()
        except EOFError:
            return
        heard_s = now_s()
        found = total(get(told))
        answers.send(Arrival(heard_s, now_s(), found))

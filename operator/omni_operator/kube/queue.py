"""Which models are to be looked at: each at most once in line, never twice at a time, failing ones ever later.

What a user said comes before what happened to children: while fifty models roll out, a new one is made at once.
"""

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from omni_operator.metrics import QUEUE_LENGTH
from omni_operator.objects import ModelKey

FIRST_BACKOFF_S = 0.5
LAST_BACKOFF_S = 300.0


class Urgency(IntEnum):
    """Lower is served first."""

    SAID = 0
    """The model itself was made, edited or deleted."""
    HAPPENED = 1
    """Something changed below it, or time has passed."""


Turn: TypeAlias = tuple[Urgency, int]
"""A place in line, by urgency and arrival."""


@dataclass
class _Entry:
    """A model that is in line, being looked at, or resting after a look (then `timer` runs)."""

    turn: Turn | None = None
    """Its place while it is in line."""
    woken: Urgency | None = None
    """Something was said or happened since the last look began."""
    failures: int = 0
    timer: asyncio.TimerHandle | None = None


@dataclass
class WorkQueue:
    """Holds one entry per model at most, so the number of models bounds it.

    `pause_s` is the shortest rest between two looks at one model: a burst of events becomes one look.
    """

    pause_s: float = 0.25
    _entries: dict[ModelKey, _Entry] = field(default_factory=dict)
    _line: asyncio.PriorityQueue[tuple[Turn, ModelKey]] = field(default_factory=asyncio.PriorityQueue)
    _arrivals: Iterator[int] = field(default_factory=itertools.count)

    def wake(self, key: ModelKey, urgency: Urgency = Urgency.HAPPENED) -> None:
        """Asks for a look at the model: at once, or as soon as its present look or rest is over."""
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = entry = _Entry()
            self._put_in_line(key, entry, urgency)
        elif entry.turn is None:
            entry.woken = urgency if entry.woken is None else min(entry.woken, urgency)
            if entry.failures and entry.timer is not None:
                self._rest(key, entry, self.pause_s)
        elif urgency < entry.turn[0]:
            self._put_in_line(key, entry, urgency)

    async def take(self) -> ModelKey:
        """The next model; the caller says `done` or `failed` afterwards."""
        while True:
            turn, key = await self._line.get()
            QUEUE_LENGTH.set(self._line.qsize())
            entry = self._entries.get(key)
            # Another turn means that the model was moved forward in line, or has been looked at since.
            if entry is not None and entry.turn == turn:
                entry.turn = None
                return key

    def done(self, key: ModelKey) -> None:
        entry = self._entries[key]
        entry.failures = 0
        self._rest(key, entry, self.pause_s)

    def failed(self, key: ModelKey, at_least_s: float = 0.0) -> None:
        """The model comes again by itself, later each time, unless something wakes it."""
        entry = self._entries[key]
        backoff_s = min(FIRST_BACKOFF_S * 2**entry.failures, LAST_BACKOFF_S)
        entry.failures = min(entry.failures + 1, 20)
        self._rest(key, entry, max(backoff_s, at_least_s) if entry.woken is None else self.pause_s)

    def _rest(self, key: ModelKey, entry: _Entry, seconds: float) -> None:
        if entry.timer is not None:
            entry.timer.cancel()
        entry.timer = asyncio.get_running_loop().call_later(seconds, self._end_rest, key, entry)

    def _end_rest(self, key: ModelKey, entry: _Entry) -> None:
        entry.timer = None
        if entry.woken is not None or entry.failures:
            self._put_in_line(key, entry, Urgency.HAPPENED if entry.woken is None else entry.woken)
        else:
            del self._entries[key]

    def _put_in_line(self, key: ModelKey, entry: _Entry, urgency: Urgency) -> None:
        entry.turn, entry.woken = (urgency, next(self._arrivals)), None
        self._line.put_nowait((entry.turn, key))
        QUEUE_LENGTH.set(self._line.qsize())

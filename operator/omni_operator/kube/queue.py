"""Which models are to be looked at: each at most once in line, never twice at a time, failing ones ever later."""

import asyncio
from dataclasses import dataclass, field

from omni_operator.metrics import QUEUE_LENGTH
from omni_operator.objects import ModelKey

FIRST_BACKOFF_S = 0.5
LAST_BACKOFF_S = 300.0


@dataclass
class _Entry:
    """A model that is in line, being looked at, or resting after a look (then `timer` runs)."""

    is_in_line: bool = False
    is_woken: bool = False
    """Something happened since the last look began."""
    failures: int = 0
    timer: asyncio.TimerHandle | None = None


@dataclass
class WorkQueue:
    """Holds one entry per model at most, so the number of models bounds it.

    `pause_s` is the shortest rest between two looks at one model: a burst of events becomes one look.
    """

    pause_s: float = 0.25
    _entries: dict[ModelKey, _Entry] = field(default_factory=dict)
    _line: asyncio.Queue[ModelKey] = field(default_factory=asyncio.Queue)

    def wake(self, key: ModelKey) -> None:
        """Asks for a look at the model: at once, or as soon as its present look or rest is over."""
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = entry = _Entry()
            self._put_in_line(key, entry)
        elif not entry.is_in_line:
            entry.is_woken = True
            if entry.failures and entry.timer is not None:
                self._rest(key, entry, self.pause_s)

    async def take(self) -> ModelKey:
        """The next model; the caller says `done` or `failed` afterwards."""
        key = await self._line.get()
        self._entries[key].is_in_line = False
        QUEUE_LENGTH.set(self._line.qsize())
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
        self._rest(key, entry, self.pause_s if entry.is_woken else max(backoff_s, at_least_s))

    def _rest(self, key: ModelKey, entry: _Entry, seconds: float) -> None:
        if entry.timer is not None:
            entry.timer.cancel()
        entry.timer = asyncio.get_running_loop().call_later(seconds, self._end_rest, key, entry)

    def _end_rest(self, key: ModelKey, entry: _Entry) -> None:
        entry.timer = None
        if entry.is_woken or entry.failures:
            self._put_in_line(key, entry)
        else:
            del self._entries[key]

    def _put_in_line(self, key: ModelKey, entry: _Entry) -> None:
        entry.is_in_line, entry.is_woken = True, False
        self._line.put_nowait(key)
        QUEUE_LENGTH.set(self._line.qsize())

"""Many deadlines by one timer: at thousands of requests a second, a timer for each would be a cost of its own."""

import asyncio
import time
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Generic, TypeVar

TICK_S = 0.05
"""How much later than asked for a deadline may pass; those of one tick pass together."""

Owner = TypeVar("Owner", bound=Hashable)


class Deadlines(Generic[Owner]):
    """Calls `passed` with each owner whose time is up. A tick that nobody waits for any more passes in silence."""

    def __init__(self, passed: Callable[[Owner], None]) -> None:
        self._passed = passed
        self._owners: dict[int, set[Owner]] = {}
        """By the tick at which they pass, numbered by the clock."""
        self._ticks: list[int] = []
        """The same ticks, the next one first."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, owner: Owner, remaining_s: float) -> int:
        """The tick, to be told when it is removed."""
        tick = int((time.monotonic() + remaining_s) / TICK_S) + 1
        owners = self._owners.get(tick)
        if owners is None:
            owners = self._owners[tick] = set()
            heappush(self._ticks, tick)
            if self._ticks[0] == tick:
                self._set_timer()
        owners.add(owner)
        return tick

    def remove(self, owner: Owner, tick: int) -> None:
        """No-op if it has passed or was removed before."""
        if (owners := self._owners.get(tick)) is not None:
            owners.discard(owner)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wait_s = self._ticks[0] * TICK_S - time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._pass)

    def _pass(self) -> None:
        self._timer = None
        tick = heappop(self._ticks)
        owners = self._owners[tick]
        # Whoever passes may remove others, and add some to later ticks.
        while owners:
            self._passed(owners.pop())
        del self._owners[tick]
        if self._ticks and self._timer is None:
            self._set_timer()

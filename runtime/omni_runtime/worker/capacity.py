"""How many requests run at once in this worker, and how many may wait for their turn."""

import asyncio
from collections.abc import Callable

from omni_contract.wire.errors import ErrorCode, OmniError


class Capacity:
    """Slots for `max_in_flight` requests; as many again may wait, first come first served. Beyond that: overloaded.

    `on_change` is called whenever `running` or `waiting` changes.
    """

    def __init__(self, max_in_flight: int, on_change: Callable[[], None]) -> None:
        self.max_in_flight = max_in_flight
        self.running = 0
        self._admitted = 0
        self._on_change = on_change
        self._slots = asyncio.Semaphore(max_in_flight)
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        return self._admitted - self.running

    def admit(self) -> "Admission":
        """Counts a request in, until its admission is given back."""
        if self._admitted >= 2 * self.max_in_flight:
            raise OmniError(
                ErrorCode.OVERLOADED,
                f"{self.running} requests run and {self.waiting} wait, which is all that this replica takes",
            )
        self._admitted += 1
        self._idle.clear()
        self._on_change()
        return Admission(self)

    async def __aenter__(self) -> None:
        """Waits for a slot and holds it for as long as the block runs."""
        await self._slots.acquire()
        self.running += 1

    async def __aexit__(self, *_: object) -> None:
        self.running -= 1
        self._slots.release()

    async def wait_idle(self) -> None:
        """Returns once no request runs or waits."""
        await self._idle.wait()

    def give_back(self) -> None:
        self._admitted -= 1
        if self._admitted == 0:
            self._idle.set()
        self._on_change()


class Admission:
    """One request's place. Giving it back twice is harmless, so that it can be done early and again at the very end."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity: Capacity | None = capacity

    def give_back(self) -> None:
        if self._capacity is not None:
            self._capacity.give_back()
            self._capacity = None

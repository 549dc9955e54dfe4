"""Who shares the next step: seats that are ready, those that waited longest first, as many as fit together."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from omni_runtime.generation.seat import Seat


def picked(seats: Sequence[Seat], size: int) -> list[Seat]:
    """The first that is ready, and others after it that may share its step."""
    ready = [seat for seat in seats if seat.is_ready]
    return [seat for seat in ready if seat.batch_key == ready[0].batch_key][:size]


class Batches:
    """The seats of an engine in the order of their last steps, and the batches that they make."""

    def __init__(self, size: int, timeout_s: float) -> None:
        self._size = size
        self._timeout_s = timeout_s
        self._seats: list[Seat] = []
        self._changed = asyncio.Event()

    @contextmanager
    def taking(self, seat: Seat) -> Iterator[None]:
        """The seat takes part while the block runs."""
        self._seats.append(seat)
        try:
            yield
        finally:
            self._seats.remove(seat)
            self._changed.set()

    @property
    def seats(self) -> tuple[Seat, ...]:
        return tuple(self._seats)

    def changed(self) -> None:
        """A seat has become ready."""
        self._changed.set()

    async def next(self) -> list[Seat]:
        """Waits for a batch to be full, or until its first member has waited long enough for others."""
        while True:
            self._changed.clear()
            batch = picked(self._seats, self._size)
            patience_s = self._patience_s(batch)
            if batch and patience_s <= 0:
                for seat in batch:
                    self._seats.remove(seat)
                    self._seats.append(seat)
                return batch
            await self._wait(patience_s if batch else None)

    def _patience_s(self, batch: Sequence[Seat]) -> float:
        if len(batch) >= self._size:
            return 0.0
        since = [seat.ready_since for seat in batch]
        arrived = [time for time in since if time is not None]
        if not arrived or len(arrived) < len(since):
            return 0.0
        return min(arrived) + self._timeout_s - asyncio.get_running_loop().time()

    async def _wait(self, timeout_s: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return

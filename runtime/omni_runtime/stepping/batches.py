"""Who shares the next step: places that are ready, those that waited longest first, as many as fit together."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar


class Place(Protocol):
    """One request in an engine whose steps several share. Everything happens on the event loop."""

    ready_since: float | None
    """When the work came that no step has begun yet; None if it need not wait for others."""

    @property
    def batch_key(self) -> str:
        """Places of one key may share a step."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether the next step may take it."""
        ...

    def begin(self) -> None:
        """A step begins that it takes part in; `release` follows."""
        ...

    def release(self) -> None:
        """The step is over for it, however it ended."""
        ...

    def fail(self, error: BaseException) -> None:
        """Its request ends with the error; the first one counts."""
        ...


P = TypeVar("P", bound=Place)


def picked(places: Sequence[P], size: int) -> list[P]:
    """The first that is ready, and others after it that may share its step."""
    ready = [place for place in places if place.is_ready]
    return [place for place in ready if place.batch_key == ready[0].batch_key][:size]


class Batches(Generic[P]):
    """The places of an engine in the order of their last steps, and the batches that they make."""

    def __init__(self, size: int, timeout_s: float) -> None:
        self._size = size
        self._timeout_s = timeout_s
        self._places: list[P] = []
        self._changed = asyncio.Event()

    @contextmanager
    def taking(self, place: P) -> Iterator[None]:
        """It takes part while the block runs."""
        self._places.append(place)
        try:
            yield
        finally:
            self._places.remove(place)
            self._changed.set()

    @property
    def places(self) -> tuple[P, ...]:
        return tuple(self._places)

    def changed(self) -> None:
        """A place has become ready."""
        self._changed.set()

    async def next(self) -> list[P]:
        """Waits for a batch to be full, or until its first member has waited long enough for others."""
        while True:
            self._changed.clear()
            batch = picked(self._places, self._size)
            patience_s = self._patience_s(batch)
            if batch and patience_s <= 0:
                for place in batch:
                    self._places.remove(place)
                    self._places.append(place)
                return batch
            await self._wait(patience_s if batch else None)

    def _patience_s(self, batch: Sequence[P]) -> float:
        if len(batch) >= self._size:
            return 0.0
        since = [place.ready_since for place in batch]
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

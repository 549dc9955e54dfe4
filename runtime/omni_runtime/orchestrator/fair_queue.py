"""Who is served next when several tenants wait: start-time fair queueing, and each tenant's own priorities inside.

A tenant is one API key. Each has a line of its own and a virtual time that grows by one with each request served; the
line with the least virtual time is next, so that a tenant with thousands of requests delays another's single one by at
most one turn. A priority orders a tenant's own requests only: nobody gains on others by raising it.

P. Goyal, H. Vin, H. Cheng: Start-time Fair Queueing (1996).
"""

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

Rank: TypeAlias = tuple[int, int]
"""Priority, then the order of arrival; the least comes first."""

FIRST: Rank = (-(2**63), -1)


@dataclass(order=True)
class _Place(Generic[T]):
    rank: Rank
    item: T = field(compare=False)


@dataclass(eq=False)
class _Line(Generic[T]):
    """One tenant's places by rank. `time` is the virtual time at which its next one starts."""

    time: float
    places: list[_Place[T]] = field(default_factory=list)

    def after(self, rank: Rank) -> _Place[T] | None:
        index = bisect_right(self.places, rank, key=_rank)
        return self.places[index] if index < len(self.places) else None

    def remove(self, rank: Rank) -> None:
        del self.places[bisect_right(self.places, rank, key=_rank) - 1]


class FairQueue(Generic[T]):
    """Items are hashable and in the queue once. All but `turns` and iteration take logarithmic time."""

    def __init__(self) -> None:
        self._urgent: _Line[T] = _Line(float("-inf"))
        self._lines: dict[str, _Line[T]] = {}
        self._where: dict[T, tuple[_Line[T], Rank]] = {}
        self._arrivals = count()
        self._time = 0.0

    def __len__(self) -> int:
        return len(self._where)

    def __iter__(self) -> Iterator[T]:
        """In no order that means anything."""
        return iter(list(self._where))

    def waiting(self) -> Mapping[str, int]:
        """How many of each tenant wait, the urgent ones left out."""
        return {tenant: len(line.places) for tenant, line in self._lines.items() if line.places}

    def last(self, tenant: str) -> T:
        """The tenant's item whose turn would come last; KeyError if it has none."""
        return self._lines[tenant].places[-1].item

    def push(self, item: T, tenant: str = "", priority: int = 0) -> None:
        """Behind the tenant's items of the same or a lower priority value. An idle line has saved nothing up."""
        line = self._lines.setdefault(tenant, _Line(self._time))
        if not line.places:
            line.time = max(line.time, self._time)
        self._insert(line, (priority, next(self._arrivals)), item)

    def push_urgent(self, item: T) -> None:
        """Before everything else: work that was lost and starts again has waited its turn already."""
        self._insert(self._urgent, (0, next(self._arrivals)), item)

    def remove(self, item: T) -> None:
        """It leaves without having been served."""
        line, rank = self._where.pop(item)
        line.remove(rank)

    def serve(self, item: T) -> None:
        """It leaves because its turn has come; its tenant's next one starts later for it."""
        line, _ = self._where[item]
        self.remove(item)
        if line is not self._urgent:
            self._time = max(self._time, line.time)
            line.time += 1.0
            self._forget_idle()

    def turns(self) -> Iterator[T]:
        """Each item once, in the order in which they are to be served; items may come and go between two steps."""
        seen: dict[int, Rank] = {}
        while (turn := self._next(seen)) is not None:
            line, place = turn
            seen[id(line)] = place.rank
            yield place.item

    def _next(self, seen: dict[int, Rank]) -> tuple[_Line[T], _Place[T]] | None:
        best: tuple[_Line[T], _Place[T]] | None = None
        for line in (self._urgent, *self._lines.values()):
            place = line.after(seen.get(id(line), FIRST))
            if place is not None and (best is None or line.time < best[0].time):
                best = line, place
        return best

    def _insert(self, line: _Line[T], rank: Rank, item: T) -> None:
        insort(line.places, _Place(rank, item))
        self._where[item] = line, rank

    def _forget_idle(self) -> None:
        """A tenant who waits for nothing and owes nothing is like one never seen."""
        idle = [name for name, line in self._lines.items() if not line.places and line.time <= self._time]
        for name in idle:
            del self._lines[name]


def _rank(place: _Place[T]) -> Rank:
    return place.rank

"""What the figures are held to; an id without a bound is reported, not judged."""

from dataclasses import dataclass

from benchmarks.ledger import Entry


@dataclass(frozen=True)
class Bound:
    """A figure may be at most this, in its entry's unit."""

    most: float


BOUNDS = {
    "hop.median_ms.c1": Bound(3),
    "operator.apply_to_children.p99_s": Bound(1),
    "operator.idle_writes_10min": Bound(0),
    "demo.cold_s": Bound(1200),
    "demo.warm_s": Bound(180),
    "test.unit_s": Bound(60),
}


def is_within_bound(entry: Entry) -> bool:
    return entry.id not in BOUNDS or entry.value <= BOUNDS[entry.id].most

"""What is counted without locks is told as Prometheus's own metrics tell it."""

from prometheus_client import CollectorRegistry, Histogram

from omni_runtime.statistics.tallies import Spread

BOUNDS = (0.001, 0.5, 1.0, 600.0)


def samples(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    found = {(one.name, one.labels.get("le", "")): one.value for family in registry.collect() for one in family.samples}
    return {key: value for key, value in found.items() if not key[0].endswith("_created")}


def test_a_spread_tells_what_a_histogram_tells_also_of_amounts_on_a_bound_and_above_all() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    spread, histogram = (
        Spread("took", "So long.", BOUNDS, ours),
        Histogram("took", "So long.", buckets=BOUNDS, registry=theirs),
    )
    for amount in (0.0, 0.001, 0.25, 0.5, 0.75, 1.0, 601.0):
        spread.observe(amount)
        histogram.observe(amount)
    assert samples(ours) == samples(theirs)

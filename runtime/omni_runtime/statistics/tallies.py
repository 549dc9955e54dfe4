"""Counters that cost next to nothing to count: one thread counts, another reads. Prometheus's own lock each time."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import inf

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric, SummaryMetricFamily


class Tally:
    """A counter with labels."""

    def __init__(self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self.counts: defaultdict[tuple[str, ...], float] = defaultdict(float)
        self._name = name
        self._text = text
        self._labels = labels
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for values, count in list(self.counts.items()):
            family.add_metric(values, count)
        yield family


class Spread:
    """A histogram without labels; `bounds` are the upper ends of its buckets."""

    def __init__(self, name: str, text: str, bounds: Sequence[float], registry: CollectorRegistry) -> None:
        self._name = name
        self._text = text
        self._bounds = (*bounds, inf)
        self._counts = [0] * len(self._bounds)
        self._sum = 0.0
        registry.register(self)

    def observe(self, amount: float) -> None:
        self._counts[bisect_left(self._bounds, amount)] += 1
        self._sum += amount

    def collect(self) -> Iterator[Metric]:
        ends = ["+Inf" if bound == inf else str(bound) for bound in self._bounds]
        family = HistogramMetricFamily(self._name, self._text)
        family.add_metric([], list(zip(ends, accumulate(self._counts), strict=True)), self._sum)
        yield family


class Sums:
    """How often something was, and how much it was in all: a summary without quantiles."""

    def __init__(self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self._sums: dict[tuple[str, ...], tuple[int, float]] = {}
        self._name = name
        self._text = text
        self._labels = labels
        registry.register(self)

    def add(self, values: tuple[str, ...], amount: float) -> None:
        count, total = self._sums.get(values, (0, 0.0))
        self._sums[values] = count + 1, total + amount

    def collect(self) -> Iterator[Metric]:
        family = SummaryMetricFamily(self._name, self._text, labels=self._labels)
        for values, (count, total) in list(self._sums.items()):
            family.add_metric(values, count, total)
        yield family

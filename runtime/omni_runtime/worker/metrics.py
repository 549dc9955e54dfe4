"""The worker's Prometheus metrics."""

from collections.abc import Callable
from functools import cache
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from omni_contract.wire import names

FAST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SLOW_BUCKETS = (*FAST_BUCKETS, 30.0, 60.0, 120.0, 300.0, 600.0)


class WorkerMetrics:
    """One set per worker, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            names.WORKER_REQUESTS, "Requests ended, by outcome.", ["outcome"], registry=self.registry
        )
        self.request_seconds = self._histogram(
            names.WORKER_REQUEST_SECONDS, "From start to terminal message.", SLOW_BUCKETS
        )
        self.step_seconds = self._histogram(names.WORKER_STEP_SECONDS, "Between two steps of a request.", SLOW_BUCKETS)
        self.cancel_seconds = self._histogram(
            names.WORKER_CANCEL_SECONDS, "From a cancel's arrival until all is freed.", FAST_BUCKETS
        )
        self._transfer_bytes = Counter(
            names.WORKER_TRANSFER_BYTES,
            "Payload bytes put (out) and got (in), by edge.",
            ["edge", "direction"],
            registry=self.registry,
        )

    @cache  # noqa: B019 - one set of metrics per process; looking up labels costs more than counting
    def _outcome(self, outcome: str) -> Counter:
        return self._requests.labels(outcome)

    @cache  # noqa: B019
    def _transfer(self, edge: str, direction: str) -> Counter:
        return self._transfer_bytes.labels(edge, direction)

    def count_outcome(self, outcome: str) -> None:
        self._outcome(outcome).inc()

    def count_transfer(self, edge: str, direction: Literal["in", "out"], size_bytes: int) -> None:
        self._transfer(edge, direction).inc(size_bytes)

    def outcomes(self) -> dict[str, int]:
        """Requests ended so far, by outcome."""
        samples = (sample for metric in self._requests.collect() for sample in metric.samples)
        return {sample.labels["outcome"]: int(sample.value) for sample in samples if sample.name.endswith("_total")}

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """A gauge that is read when it is scraped."""
        Gauge(name, text, registry=self.registry).set_function(value)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, buckets=buckets, registry=self.registry)

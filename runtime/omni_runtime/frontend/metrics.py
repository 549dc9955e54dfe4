"""The frontend's own metrics. What it knows of the stages is read at each scrape, not kept twice."""

from collections.abc import Iterator

from prometheus_client import (
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from omni_contract.wire import names
from omni_runtime.orchestrator import Orchestrator

SECONDS = (0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)
_PREFIX = f"{names.METRIC_PREFIX}_frontend"


class FrontendMetrics:
    def __init__(self, orchestrator: Orchestrator) -> None:
        self._registry = CollectorRegistry()
        labels = ("endpoint", "status")
        self._requests = Counter(f"{_PREFIX}_requests", "HTTP requests answered.", labels, registry=self._registry)
        self._seconds = Histogram(
            f"{_PREFIX}_request_seconds",
            "Time from a request's first byte to its answer's last.",
            ("endpoint",),
            buckets=SECONDS,
            registry=self._registry,
        )
        for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
            self._registry.register(collector)
        self._registry.register(_StageCollector(orchestrator))

    def answered(self, endpoint: str, status: int, took_s: float) -> None:
        self._requests.labels(endpoint, str(status)).inc()
        self._seconds.labels(endpoint).observe(took_s)

    def exposition(self) -> bytes:
        return generate_latest(self._registry)


class _StageCollector:
    """Reads the orchestrator when it is scraped."""

    def __init__(self, orchestrator: Orchestrator) -> None:
        self._orchestrator = orchestrator

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(f"{_PREFIX}_sessions", "Open sessions.", self._orchestrator.open_sessions)
        yield CounterMetricFamily(
            f"{_PREFIX}_retries", "Sessions that lost work and ran it again.", self._orchestrator.retries_total
        )
        if (expires_s := self._orchestrator.certificate_expires_s) is not None:
            yield GaugeMetricFamily(names.FRONTEND_CERTIFICATE_EXPIRES, "When our certificate ends.", expires_s)
        waiting = GaugeMetricFamily(f"{_PREFIX}_waiting", "Requests that wait for a replica.", labels=["stage"])
        running = GaugeMetricFamily(f"{_PREFIX}_running", "Requests at the stage's replicas.", labels=["stage"])
        replicas = GaugeMetricFamily(f"{_PREFIX}_replicas", "Replicas that take work.", labels=["stage"])
        for stage in self._orchestrator.stages():
            waiting.add_metric([stage.name], stage.waiting)
            running.add_metric([stage.name], sum(replica.in_flight for replica in stage.replicas))
            replicas.add_metric([stage.name], sum(replica.is_routable for replica in stage.replicas))
        yield from (waiting, running, replicas)

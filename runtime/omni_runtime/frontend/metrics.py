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
from omni_runtime.frontend.session_metrics import SECONDS, SessionMetrics
from omni_runtime.orchestrator import Orchestrator
from omni_runtime.statistics.files import StatsFiles


class FrontendMetrics:
    def __init__(self, orchestrator: Orchestrator, stats: StatsFiles | None = None) -> None:
        self._registry = CollectorRegistry()
        labels = ("endpoint", "status")
        self._requests = Counter(names.FRONTEND_REQUESTS, "HTTP requests answered.", labels, registry=self._registry)
        self._seconds = Histogram(
            names.FRONTEND_REQUEST_SECONDS,
            "Time from a request's first byte to its answer's last.",
            ("endpoint",),
            buckets=SECONDS,
            registry=self._registry,
        )
        for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
            self._registry.register(collector)
        self._registry.register(_StageCollector(orchestrator))
        if stats is not None:
            self._registry.register(_StatsCollector(stats))
        orchestrator.observe(SessionMetrics(self._registry).session_ended)

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
        yield GaugeMetricFamily(names.FRONTEND_SESSIONS, "Open sessions.", self._orchestrator.open_sessions)
        yield CounterMetricFamily(
            names.FRONTEND_RETRIES, "Sessions that lost work and ran it again.", self._orchestrator.retries_total
        )
        most = self._orchestrator.table.limits.max_queue_length
        yield GaugeMetricFamily(names.FRONTEND_QUEUE_LIMIT, "How many requests may wait in all.", most)
        if (expires_s := self._orchestrator.certificate_expires_s) is not None:
            yield GaugeMetricFamily(names.FRONTEND_CERTIFICATE_EXPIRES, "When our certificate ends.", expires_s)
        waiting = GaugeMetricFamily(names.FRONTEND_WAITING, "Requests that wait for a replica.", labels=["stage"])
        running = GaugeMetricFamily(names.FRONTEND_RUNNING, "Requests at the stage's replicas.", labels=["stage"])
        replicas = GaugeMetricFamily(names.FRONTEND_REPLICAS, "Replicas that take work.", labels=["stage"])
        for stage in self._orchestrator.stages():
            waiting.add_metric([stage.name], stage.waiting)
            running.add_metric([stage.name], sum(replica.in_flight for replica in stage.replicas))
            replicas.add_metric([stage.name], sum(replica.is_routable for replica in stage.replicas))
        yield from (waiting, running, replicas, self._servable())

    def _servable(self) -> Metric:
        family = GaugeMetricFamily(names.FRONTEND_SERVABLE, "1 while the output can be served.", labels=["modality"])
        for modality, is_servable in self._orchestrator.servable().items():
            family.add_metric([modality], is_servable)
        return family


class _StatsCollector:
    """Reads how the files of statistics are doing."""

    def __init__(self, files: StatsFiles) -> None:
        self._files = files

    def collect(self) -> Iterator[Metric]:
        text = "Sessions whose statistics were written to files, or lost."
        family = CounterMetricFamily(names.FRONTEND_STATS_REQUESTS, text, labels=["outcome"])
        family.add_metric(["written"], self._files.written)
        family.add_metric(["lost"], self._files.lost)
        yield family

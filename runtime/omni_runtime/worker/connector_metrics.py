"""Prometheus metrics of the connectors that count what they do, read when they are scraped."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from omni_contract.wire import names
from omni_runtime.connectors.counters import ConnectorHealth, Counters


class ConnectorMetrics:
    def __init__(self, health: Callable[[], Mapping[str, ConnectorHealth]], registry: CollectorRegistry) -> None:
        self._health = health
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        now = self._health()
        counters = {name: health.counters for name, health in now.items()}
        yield _counter(names.WORKER_CONNECTOR_EVENTS, "What a connector did.", counters, _events)
        yield _counter(names.WORKER_CONNECTOR_BYTES, "Bytes that a connector moved.", counters, _bytes)
        healthy = GaugeMetricFamily(
            names.WORKER_CONNECTOR_HEALTHY, "0 while a connector has trouble.", labels=["connector"]
        )
        for name, health in now.items():
            healthy.add_metric([name], health.is_healthy)
        yield healthy


def _counter(
    name: str, text: str, counters: Mapping[str, Counters], figures: Callable[[Counters], Mapping[str, int]]
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=["connector", "what"])
    for connector, counted in counters.items():
        for what, value in figures(counted).items():
            family.add_metric([connector, what], value)
    return family


def _events(counters: Counters) -> Mapping[str, int]:
    return {
        "puts": counters.puts,
        "gets": counters.gets,
        "retries": counters.retries,
        "detours": counters.detours,
        "errors": counters.errors,
        "chunks": counters.chunks,
        "chunk_messages": counters.chunk_messages,
    }


def _bytes(counters: Counters) -> Mapping[str, int]:
    return {"put": counters.put_bytes, "got": counters.get_bytes}

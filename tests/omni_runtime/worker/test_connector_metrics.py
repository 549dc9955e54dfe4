"""What connectors count can be scraped."""

from prometheus_client import CollectorRegistry

from omni_runtime.connectors.counters import ConnectorHealth, Counters
from omni_runtime.worker.connector_metrics import ConnectorMetrics

LABELS = {"connector": "engine"}


def test_the_figures_of_each_connector_are_those_of_the_moment() -> None:
    registry, counters = CollectorRegistry(), Counters(puts=3, get_bytes=700, detours=1)
    health = {"engine": ConnectorHealth("", counters)}
    ConnectorMetrics(lambda: health, registry)

    counters.detours += 1
    assert registry.get_sample_value("omni_worker_connector_events_total", LABELS | {"what": "detours"}) == 2
    assert registry.get_sample_value("omni_worker_connector_events_total", LABELS | {"what": "puts"}) == 3
    assert registry.get_sample_value("omni_worker_connector_bytes_total", LABELS | {"what": "got"}) == 700


def test_a_connector_in_trouble_shows() -> None:
    registry, health = CollectorRegistry(), {"engine": ConnectorHealth()}
    ConnectorMetrics(lambda: health, registry)
    assert registry.get_sample_value("omni_worker_connector_healthy", LABELS) == 1

    health["engine"] = ConnectorHealth("the master does not answer")
    assert registry.get_sample_value("omni_worker_connector_healthy", LABELS) == 0

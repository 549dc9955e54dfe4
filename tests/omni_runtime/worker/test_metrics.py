"""What a worker counts, and that nobody can make it keep more series than its stage has edges."""

import pytest

from omni_contract.wire.payload import Array, data_bytes
from omni_runtime.engines.protocol import StageUsage
from omni_runtime.worker.metrics import OTHER, WorkerMetrics


@pytest.fixture
def metrics() -> WorkerMetrics:
    return WorkerMetrics(["a->b", "b->c"])


def test_edges_that_the_stage_does_not_have_share_one_series(metrics: WorkerMetrics) -> None:
    for number in range(1000):
        metrics.flow(f"edge-{number}").take(10, 0.5)
        metrics.flow(f"edge-{number}").take_chunk(10)
    sample = metrics.registry.get_sample_value
    assert sample("omni_worker_transfer_bytes_total", {"edge": OTHER, "direction": "in"}) == 20_000
    assert sample("omni_worker_edge_rx_decode_seconds_count", {"edge": OTHER}) == 1000
    assert sample("omni_worker_stream_chunks_total", {"edge": OTHER, "direction": "in"}) == 1000
    assert not any("edge-" in str(sample.labels) for one in metrics.registry.collect() for sample in one.samples)


def test_a_summary_is_how_often_and_how_much(metrics: WorkerMetrics) -> None:
    metrics.flow("a->b").put(100, 0.25)
    metrics.flow("a->b").put(50, 0.5)
    sample = metrics.registry.get_sample_value
    assert sample("omni_worker_edge_tx_seconds_count", {"edge": "a->b"}) == 2
    assert sample("omni_worker_edge_tx_seconds_sum", {"edge": "a->b"}) == 0.75
    assert sample("omni_worker_transfer_bytes_total", {"edge": "a->b", "direction": "out"}) == 150


def test_streamed_chunks_are_among_the_bytes_of_their_edge_and_apart(metrics: WorkerMetrics) -> None:
    metrics.flow("b->c").put_chunk(10, 0.1)
    metrics.flow("b->c").put_chunk(20, 0.1)
    way = {"edge": "b->c", "direction": "out"}
    sample = metrics.registry.get_sample_value
    assert sample("omni_worker_transfer_bytes_total", way) == sample("omni_worker_stream_bytes_total", way) == 30
    assert sample("omni_worker_stream_chunks_total", way) == 2


def test_post_processing_is_no_part_of_the_generation(metrics: WorkerMetrics) -> None:
    metrics.work.add(StageUsage(input_tokens=3, output_tokens=5, postprocess_seconds=0.25, batch_size=2), 1.0)
    sample = metrics.registry.get_sample_value
    assert sample("omni_worker_generation_seconds_sum") == 0.75
    assert sample("omni_worker_postprocess_seconds_sum") == 0.25
    assert sample("omni_worker_batch_size_sum") == 2
    assert sample("omni_worker_tokens_total", {"direction": "out"}) == 5


def test_what_a_payload_carries_is_its_arrays_its_bytes_and_its_text() -> None:
    array = Array("int16", (2, 3), memoryview(bytes(12)))
    payload = {"a": array, "b": [b"xy", memoryview(bytes(4)).cast("H")], "c": {"d": "abc"}, "e": 7, "f": None}
    assert data_bytes(payload) == 12 + 2 + 4 + 3

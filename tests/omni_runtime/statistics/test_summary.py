"""A run of several requests as one summary."""

import pytest

from omni_runtime.statistics.request import TransferEdgeStats
from omni_runtime.statistics.summary import summary_of
from tests.omni_runtime.statistics.examples import request, stage


def test_walls_reach_from_the_first_start_to_the_last_end_not_over_the_sum_of_times() -> None:
    first = request((stage("a", 0, 2, num_tokens_in=3, num_tokens_out=5), stage("b", 2, 3)), began_s=0.0, ended_s=3.0)
    second = request((stage("a", 1, 4, num_tokens_out=2), stage("b", 4, 6)), began_s=1.0, ended_s=6.5)
    summary = summary_of([first, second])
    assert (summary.e2e_requests, summary.e2e_wall_time_ms, summary.e2e_total_tokens) == (2, 6500, 10)
    assert summary.stage_wall_time_ms == {"a": 4000, "b": 4000}
    assert summary.e2e_avg_time_per_request_ms == 3250
    assert summary.e2e_avg_tokens_per_s == pytest.approx(10 / 6.5)


def test_only_the_first_stage_s_input_counts_as_tokens_of_the_request() -> None:
    """What later stages read, earlier ones made."""
    stages = (stage("a", num_tokens_in=10, num_tokens_out=4), stage("b", num_tokens_in=4, num_tokens_out=6))
    assert request(stages).e2e.e2e_total_tokens == 20


def test_transfers_sum_every_part_of_every_edge() -> None:
    edges = (TransferEdgeStats("a->b", 2.0, 1.0, 2.0, 3.0), TransferEdgeStats("b->c", 0.5, 0.1, 0.2, 0.3))
    e2e = request(edges=edges).e2e
    assert e2e.transfers_total_time_ms == pytest.approx(6.6)
    assert e2e.transfers_total_kbytes == 2.5

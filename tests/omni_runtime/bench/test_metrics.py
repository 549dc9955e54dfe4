from typing import Any

import pytest

from omni_runtime.bench.metrics import figure_names, peak_concurrency, peak_rate, percentile, summary
from omni_runtime.bench.outcome import Outcome
from omni_runtime.bench.settings import Report


def outcome(**fields: Any) -> Outcome:
    """Ten tokens in 100 ms steps from 200 ms on; sound of 2 s from 300 ms to the end at 1.5 s."""
    usual: dict[str, Any] = {
        "sent_s": 0.0,
        "latency_s": 1.5,
        "input_tokens": 20,
        "output_tokens": 10,
        "text_at_s": [0.2 + 0.1 * number for number in range(10)],
        "audio_at_s": 0.3,
        "audio_s": 2.0,
        "audio_frames": 48_000,
    }
    return Outcome(**{**usual, **fields})


@pytest.mark.parametrize(("percent", "value"), [(0, 1.0), (25, 1.75), (50, 2.5), (90, 3.7), (99, 3.97), (100, 4.0)])
def test_a_percentile_lies_on_the_line_between_two_values(percent: float, value: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], percent) == pytest.approx(value)


def test_the_percentile_of_one_value_is_that_value() -> None:
    assert percentile([5.0], 99) == 5.0


def test_each_metric_of_a_request_is_as_it_is_defined() -> None:
    one = outcome()
    assert (one.ttft_s, one.audio_at_s) == (0.2, 0.3)
    assert one.tpot_s == pytest.approx(0.1), "sound that goes on after the text does not count"
    assert one.itl_s == pytest.approx([0.1] * 9)
    assert one.audio_rtf == 0.75, "wall time of the whole by seconds of sound"


def test_the_figures_of_a_run() -> None:
    runs = [outcome(), outcome(sent_s=1.0, latency_s=2.5, audio_s=4.0, audio_frames=96_000)]
    figures = summary(runs, 4.0, Report(percentiles=(50.0, 99.0)))
    expected = {
        "completed": 2,
        "failed": 0,
        "duration": 4.0,
        "total_input_tokens": 40,
        "total_output_tokens": 20,
        "request_throughput": 0.5,
        "output_throughput": 5.0,
        "total_token_throughput": 15.0,
        "max_concurrent_requests": 2,
        "total_audio_duration_s": 6.0,
        "total_audio_frames": 144_000,
        "audio_throughput": 1.5,
        "mean_ttft_ms": 200.0,
        "p99_ttft_ms": 200.0,
        "mean_tpot_ms": 100.0,
        "median_itl_ms": 100.0,
        "mean_e2el_ms": 2000.0,
        "std_e2el_ms": 500.0,
        "p50_e2el_ms": 2000.0,
        "p99_e2el_ms": 2490.0,
        "mean_audio_ttfp_ms": 300.0,
        "mean_audio_rtf": 0.6875,
        "mean_audio_duration_s": 3.0,
    }
    assert {name: figures[name] for name in expected} == pytest.approx(expected)


def test_a_request_that_failed_counts_for_nothing_else() -> None:
    figures = summary([outcome(), outcome(error="503", latency_s=99.0)], 2.0, Report())
    assert (figures["completed"], figures["failed"]) == (1, 1)
    assert figures["mean_e2el_ms"] == 1500.0 and figures["total_output_tokens"] == 10


def test_a_metric_that_no_request_has_is_left_out() -> None:
    silent = outcome(audio_at_s=None, audio_s=0.0, audio_frames=0, text_at_s=[], output_tokens=0)
    figures = summary([silent], 1.0, Report())
    assert not any("ttft" in name or "rtf" in name or "itl" in name for name in figures)
    assert figures["mean_e2el_ms"] == 1500.0


def test_the_names_of_figures_are_known_before_a_run() -> None:
    asked = Report(metrics=("ttft", "audio_rtf"), percentiles=(50.0, 99.9))
    names = figure_names(asked)
    assert set(names) == set(summary([outcome(slo_s=1.0)], 1.0, asked))
    assert "p99.9_ttft_ms" in names and "mean_itl_ms" not in names


def test_one_token_has_a_first_time_and_no_time_for_each_further_one() -> None:
    one = outcome(text_at_s=[0.4], output_tokens=1)
    assert (one.ttft_s, one.tpot_s, one.itl_s) == (0.4, None, [])


def test_the_share_within_the_slo_counts_those_that_failed() -> None:
    runs = [outcome(slo_s=2.0), outcome(slo_s=1.0), outcome(slo_s=2.0, error="lost")]
    assert summary(runs, 1.0, Report())["slo_attainment"] == pytest.approx(1 / 3)
    assert "slo_attainment" not in summary([outcome()], 1.0, Report())


def test_a_request_that_ends_as_another_begins_is_not_beside_it() -> None:
    assert peak_concurrency([outcome(latency_s=1.0), outcome(sent_s=1.0), outcome(sent_s=0.5, latency_s=0.1)]) == 2


def test_the_peak_of_the_rate_is_of_one_second_of_the_run() -> None:
    assert peak_rate([outcome(), outcome(sent_s=0.3)]) == 8 + 5
    assert peak_rate([]) == 0

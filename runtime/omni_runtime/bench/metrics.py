"""Pure: the figures of a run, under the names that other tools know."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median, pstdev

from omni_runtime.bench.outcome import Outcome
from omni_runtime.bench.settings import Report

MS = 1000.0
METRICS: Mapping[str, tuple[str, float, Callable[[Outcome], Sequence[float | None]]]] = {
    "ttft": ("ttft_ms", MS, lambda one: [one.ttft_s]),
    "tpot": ("tpot_ms", MS, lambda one: [one.tpot_s]),
    "itl": ("itl_ms", MS, lambda one: one.itl_s),
    "e2el": ("e2el_ms", MS, lambda one: [one.latency_s]),
    "audio_ttfp": ("audio_ttfp_ms", MS, lambda one: [one.audio_at_s]),
    "audio_rtf": ("audio_rtf", 1.0, lambda one: [one.audio_rtf]),
    "audio_duration": ("audio_duration_s", 1.0, lambda one: [one.audio_s or None]),
}
"""Of each: its name in the results, the unit, and what a request contributes."""


def percentile(values: Sequence[float], percent: float) -> float:
    """Between two values in a straight line, as numpy has it."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def summary(outcomes: Sequence[Outcome], duration_s: float, report: Report) -> dict[str, float]:
    """Failed requests count as failed and for nothing else; a metric that no request has is left out."""
    good = [one for one in outcomes if one.is_ok]
    figures = {**_totals(good, duration_s), "failed": len(outcomes) - len(good)}
    if any(one.slo_s is not None for one in outcomes):
        figures["slo_attainment"] = sum(one.has_met_slo for one in outcomes) / len(outcomes)
    for metric in report.metrics:
        figures |= _distribution(metric, good, report.percentiles)
    return figures


def figure_names(report: Report) -> list[str]:
    """All that a summary of such a run may tell."""
    of_metrics = [f"{kind}_{METRICS[metric][0]}" for metric in report.metrics for kind in _kinds(report.percentiles)]
    return [*_totals([], duration_s=1.0), "failed", "slo_attainment", *of_metrics]


def peak_concurrency(outcomes: Sequence[Outcome]) -> int:
    """The most requests that were under way at one moment."""
    turns = [(one.sent_s, 1) for one in outcomes] + [(one.sent_s + one.latency_s, -1) for one in outcomes]
    running, most = 0, 0
    for _, change in sorted(turns):
        running += change
        most = max(most, running)
    return most


def peak_rate(outcomes: Sequence[Outcome]) -> int:
    """The most chunks of text that came within one second of the run, counted from its beginning."""
    seconds = Counter(math.floor(one.sent_s + at_s) for one in outcomes for at_s in one.text_at_s)
    return max(seconds.values(), default=0)


def _totals(good: Sequence[Outcome], duration_s: float) -> dict[str, float]:
    inputs, outputs = sum(one.input_tokens for one in good), sum(one.output_tokens for one in good)
    audio_s, images = sum(one.audio_s for one in good), sum(one.images for one in good)
    return {
        "duration": duration_s,
        "completed": len(good),
        "total_input_tokens": inputs,
        "total_output_tokens": outputs,
        "request_throughput": len(good) / duration_s,
        "output_throughput": outputs / duration_s,
        "total_token_throughput": (inputs + outputs) / duration_s,
        "max_output_tokens_per_s": peak_rate(good),
        "max_concurrent_requests": peak_concurrency(good),
        "total_audio_duration_s": audio_s,
        "total_audio_frames": sum(one.audio_frames for one in good),
        "audio_throughput": audio_s / duration_s,
        "total_images": images,
        "image_throughput": images / duration_s,
    }


def _distribution(metric: str, good: Sequence[Outcome], percentiles: Sequence[float]) -> dict[str, float]:
    name, unit, of_one = METRICS[metric]
    values = [value * unit for one in good for value in of_one(one) if value is not None]
    if not values:
        return {}
    figures = (fmean(values), median(values), pstdev(values), *(percentile(values, one) for one in percentiles))
    return {f"{kind}_{name}": figure for kind, figure in zip(_kinds(percentiles), figures, strict=True)}


def _kinds(percentiles: Sequence[float]) -> list[str]:
    """Of a metric's figures."""
    return ["mean", "median", "std", *(f"p{percent:g}" for percent in percentiles)]

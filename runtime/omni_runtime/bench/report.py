"""What a run found: a table for people, a file for tools."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from omni_runtime.bench.metrics import METRICS
from omni_runtime.bench.outcome import Outcome
from omni_runtime.bench.run import Run
from omni_runtime.bench.settings import BenchError, BenchSettings

WIDTH, LABEL = 62, 42
MOST_ERRORS = 3
TITLES = {
    "completed": "Successful requests",
    "failed": "Failed requests",
    "duration": "Benchmark duration (s)",
    "total_input_tokens": "Total input tokens",
    "total_output_tokens": "Total generated tokens",
    "request_throughput": "Request throughput (req/s)",
    "output_throughput": "Output token throughput (tok/s)",
    "max_output_tokens_per_s": "Peak output token throughput (tok/s)",
    "max_concurrent_requests": "Peak concurrent requests",
    "total_token_throughput": "Total token throughput (tok/s)",
    "total_audio_duration_s": "Total audio duration (s)",
    "total_audio_frames": "Total audio frames",
    "audio_throughput": "Audio throughput (audio s / s)",
    "total_images": "Total images",
    "image_throughput": "Image throughput (images/s)",
    "slo_attainment": "Requests within their SLO (share)",
}
HEADINGS = {
    "ttft": "Time to first token",
    "tpot": "Time per output token, without the first",
    "itl": "Inter-token latency",
    "e2el": "End-to-end latency",
    "audio_ttfp": "Time to first audio packet",
    "audio_rtf": "Real time factor of audio",
    "audio_duration": "Duration of audio",
}
ONLY_IF_ANY = ("total_audio_duration_s", "total_audio_frames", "audio_throughput", "total_images", "image_throughput")


def table(figures: Mapping[str, float], outcomes: Sequence[Outcome], metrics: Sequence[str]) -> str:
    return "\n".join(_lines(figures, outcomes, metrics)) + "\n"


def result(settings: BenchSettings, run: Run, figures: Mapping[str, float], date: datetime) -> dict[str, Any]:
    """The whole of the JSON file: what was asked for, then what came of it."""
    load = settings.load
    head = {
        "date": date.strftime("%Y%m%d-%H%M%S"),
        "label": settings.report.label,
        "backend": settings.target.backend,
        "endpoint": settings.target.path,
        "model_id": run.model,
        "dataset_name": settings.dataset,
        "num_prompts": len(run.asked),
        "seed": load.seed,
        "request_rate": load.rate if math.isfinite(load.rate) else "inf",
        "burstiness": load.burstiness,
        "max_concurrency": load.max_concurrency,
    }
    return {**head, **figures, **(_details(run) if settings.report.is_detailed else {})}


def save(settings: BenchSettings, model: str, found: Mapping[str, Any]) -> Path:
    """Raises BenchError."""
    path = settings.report.directory / (settings.report.file or _file_name(settings, model, found["date"]))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n")
    except OSError as exc:
        raise BenchError(f"{path}: {exc.strerror}") from exc
    return path


def _file_name(settings: BenchSettings, model: str, date: str) -> str:
    label = settings.report.label or settings.target.backend
    return f"{label}-{settings.load.rate:g}qps-{model.rpartition('/')[2]}-{date}.json"


def _details(run: Run) -> dict[str, Any]:
    return {
        "input_lens": [one.input_tokens for one in run.outcomes],
        "output_lens": [one.output_tokens for one in run.outcomes],
        "start_times": [one.sent_s for one in run.outcomes],
        "latencies": [one.latency_s for one in run.outcomes],
        "ttfts": [one.ttft_s for one in run.outcomes],
        "itls": [one.itl_s for one in run.outcomes],
        "audio_ttfps": [one.audio_at_s for one in run.outcomes],
        "audio_durations": [one.audio_s for one in run.outcomes],
        "generated_texts": [one.text for one in run.outcomes],
        "errors": [one.error for one in run.outcomes],
    }


def _lines(figures: Mapping[str, float], outcomes: Sequence[Outcome], metrics: Sequence[str]) -> Iterator[str]:
    yield " Serving benchmark result ".center(WIDTH, "=")
    for name, title in TITLES.items():
        if name in figures and (figures[name] or name not in ONLY_IF_ANY):
            yield _line(title, figures[name])
    for metric in metrics:
        name = METRICS[metric][0]
        of_metric = {key: value for key, value in figures.items() if key.endswith(f"_{name}") and key[0] in "mp"}
        if of_metric:
            yield HEADINGS[metric].center(WIDTH, "-")
        for key, value in of_metric.items():
            yield _line(_title(key.removesuffix(f"_{name}"), name), value)
    yield "=" * WIDTH
    errors = Counter(one.error for one in outcomes if one.error)
    for error, count in errors.most_common(MOST_ERRORS):
        yield f"{count} failed: {error}"


def _title(statistic: str, name: str) -> str:
    metric, _, unit = name.rpartition("_")
    shown = f"{metric.upper()} ({unit})" if unit in ("ms", "s") else name.upper()
    return f"{statistic.capitalize()} {shown}"


def _line(title: str, value: float) -> str:
    text = f"{value:.2f}" if isinstance(value, float) else str(value)
    return f"{title + ':':<{LABEL}} {text:<{WIDTH - LABEL - 1}}".rstrip()

import json
from datetime import datetime
from pathlib import Path

import pytest

from omni_runtime.bench import report
from omni_runtime.bench.metrics import summary
from omni_runtime.bench.run import Run
from omni_runtime.bench.settings import BenchError, BenchSettings, Load, Report, Target
from tests.omni_runtime.bench.test_metrics import outcome

MODEL = "org/fox"
RUN = Run(MODEL, [], [outcome(), outcome(error="503: away"), outcome(error="503: away")], 3.0)


def settings(**fields: object) -> BenchSettings:
    return BenchSettings(Target("http://x"), load=Load(rate=2.5), report=Report(**fields))  # type: ignore[arg-type]


def test_the_table_shows_each_figure_and_why_requests_failed() -> None:
    figures = summary(RUN.outcomes, RUN.duration_s, Report())
    shown = report.table(figures, RUN.outcomes, Report().metrics)
    assert "Successful requests:                       1\n" in shown
    assert "P99 TTFT (ms):                             200.00\n" in shown
    assert "Mean AUDIO_RTF:                            0.75\n" in shown
    assert shown.endswith("2 failed: 503: away\n")
    assert max(map(len, shown.splitlines()[:-1])) == 62


def test_figures_of_media_that_nobody_made_are_not_shown() -> None:
    shown = report.table(summary([outcome()], 1.0, Report()), [], Report().metrics)
    assert "audio duration" in shown and "images" not in shown


def test_the_file_holds_what_was_asked_for_and_what_came_of_it(tmp_path: Path) -> None:
    chosen = settings(directory=tmp_path / "deep", is_detailed=True)
    figures = summary(RUN.outcomes, RUN.duration_s, Report())
    found = report.result(chosen, RUN, figures, datetime(2026, 1, 2, 3, 4, 5))
    path = report.save(chosen, MODEL, found)
    assert path.name == "openai-chat-omni-2.5qps-fox-20260102-030405.json"
    kept = json.loads(path.read_text())
    assert (kept["request_rate"], kept["backend"], kept["mean_ttft_ms"]) == (2.5, "openai-chat-omni", 200.0)
    assert kept["errors"] == ["", "503: away", "503: away"] and len(kept["itls"][0]) == 9


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(BenchError, match="a"):
        report.save(settings(directory=tmp_path / "a", file="x.json"), MODEL, {})

"""Spans as the OpenTelemetry SDK records them, written to a folder and read back."""

import argparse
from pathlib import Path

import pytest

from omni_runtime.tracing.settings import TracingSettings, add_arguments, settings_from
from omni_runtime.tracing.span_files import SpanRecord, read_spans
from omni_runtime.tracing.spans import NO_SPAN, UNTRACED
from omni_runtime.tracing.start import start_tracing

OUTSIDE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = OUTSIDE[:-1] + "0"


def recorded(folder: Path, parent: str = "", ratio: float = 1.0, error: str = "") -> dict[str, SpanRecord]:
    tracing = start_tracing(TracingSettings(directory=folder, ratio=ratio), "frontend", "f/0", {"omni.stage": "x"})
    outer = tracing.start("outer", parent, {"omni.request_id": "r1"}, "server")
    inner = tracing.start("inner", outer.traceparent)
    inner.end(error, {"omni.size_bytes": 7})
    inner.end("too late")
    outer.end()
    tracing.close()
    return {span.name: span for span in read_spans(folder)}


def test_a_span_under_another_is_of_its_trace(tmp_path: Path) -> None:
    spans = recorded(tmp_path)
    assert spans["inner"].trace_id == spans["outer"].trace_id
    assert spans["inner"].parent_id == spans["outer"].span_id
    assert spans["outer"].parent_id == ""
    assert spans["outer"].start_ns <= spans["inner"].start_ns <= spans["inner"].end_ns <= spans["outer"].end_ns


def test_a_trace_that_began_outside_goes_on(tmp_path: Path) -> None:
    outer = recorded(tmp_path, OUTSIDE)["outer"]
    assert (outer.trace_id, outer.parent_id) == (OUTSIDE.split("-")[1], OUTSIDE.split("-")[2])


def test_what_the_caller_did_not_sample_is_not_recorded(tmp_path: Path) -> None:
    assert recorded(tmp_path, UNSAMPLED) == {}


def test_the_ratio_decides_about_traces_that_begin_here(tmp_path: Path) -> None:
    assert recorded(tmp_path, ratio=0.0) == {}


def test_a_span_ends_once_with_its_error_and_what_was_learned_since(tmp_path: Path) -> None:
    spans = recorded(tmp_path, error="transfer_failed")
    assert (spans["inner"].error, spans["inner"].attributes) == ("transfer_failed", {"omni.size_bytes": 7})
    assert (spans["outer"].error, spans["outer"].attributes) == ("", {"omni.request_id": "r1"})


def test_without_an_exporter_the_caller_s_trace_is_passed_on() -> None:
    assert start_tracing(TracingSettings(), "frontend", "f") is UNTRACED
    assert UNTRACED.start("outer", OUTSIDE).traceparent == OUTSIDE
    assert UNTRACED.start("outer") is NO_SPAN


def test_flags_say_where_spans_go(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    given = parser.parse_args(
        ["--trace-dir", str(tmp_path), "--otlp-endpoint", "http://otel:4317", "--trace-ratio", "0.5"]
    )
    assert settings_from(given) == TracingSettings("http://otel:4317", tmp_path, 0.5)
    assert not settings_from(parser.parse_args([])).is_on


@pytest.mark.parametrize("ratio", ["-0.1", "1.1", "often"])
def test_a_ratio_that_is_none_is_refused(ratio: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--trace-ratio", ratio])
    assert "not a number between 0 and 1" in capsys.readouterr().err

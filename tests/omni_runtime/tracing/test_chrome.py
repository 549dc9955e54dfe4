"""Spans of one request, as Chrome and Perfetto show them."""

from dataclasses import replace
from pathlib import Path

from omni_runtime.tracing.chrome import chrome_trace, spans_of_request
from omni_runtime.tracing.span_files import SpanRecord


def record(name: str, start_ms: int = 0, end_ms: int = 10, **fields: object) -> SpanRecord:
    usual = SpanRecord("t1", f"id-{name}", "", name, "stage", "a-0", start_ms * 10**6, end_ms * 10**6, "", {})
    return replace(usual, **fields)  # type: ignore[arg-type]


def events_of(*spans: SpanRecord) -> dict[str, dict[str, object]]:
    return {event["name"]: event for event in chrome_trace(spans)["traceEvents"] if event["ph"] == "X"}


def test_a_request_s_spans_are_all_those_of_its_traces_by_start() -> None:
    spans = [
        record("late", 5),
        record("first", 0, attributes={"omni.request_id": "req-1/aa-0"}),
        record("of another trace", trace_id="t2", attributes={"omni.request_id": "req-10"}),
    ]
    assert [span.name for span in spans_of_request(spans, "req-1")] == ["first", "late"]


def test_nothing_is_found_of_an_unknown_request() -> None:
    assert spans_of_request([record("a", attributes={"omni.request_id": "req-1"})], "req-2") == []


def test_times_are_microseconds_and_an_error_is_shown() -> None:
    event = events_of(record("run", 2, 5, error="stage_failed", attributes={"omni.stage": "a"}))["run"]
    assert (event["ts"], event["dur"]) == (2000, 3000)
    assert event["args"] == {"omni.stage": "a", "error": "stage_failed", "trace_id": "t1", "span_id": "id-run"}


def test_each_process_has_a_row_with_its_name() -> None:
    trace = chrome_trace([record("a"), record("b", instance="b-0"), record("c", service="frontend", instance="f")])
    rows = {event["args"]["name"]: event["pid"] for event in trace["traceEvents"] if event["ph"] == "M"}
    assert rows == {"stage a-0": 1, "stage b-0": 2, "frontend f": 3}


def test_spans_that_overlap_lie_in_lanes_of_their_own() -> None:
    events = events_of(record("a", 0, 10), record("b", 5, 20), record("c", 10, 15))
    assert [events[name]["tid"] for name in "abc"] == [0, 1, 0]


def test_a_line_that_a_killed_process_left_unfinished_is_left_out(tmp_path: Path) -> None:
    from omni_runtime.tracing.span_files import read_spans

    (tmp_path / "x.jsonl").write_text('{"trace_id": "t')
    assert list(read_spans(tmp_path)) == []

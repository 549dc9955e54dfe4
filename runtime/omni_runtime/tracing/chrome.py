"""A request's spans in the trace format of Chrome and Perfetto. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

from omni_runtime.tracing.span_files import SpanRecord
from omni_runtime.tracing.spans import REQUEST_ID


def spans_of_request(spans: Iterable[SpanRecord], request_id: str) -> list[SpanRecord]:
    """Every span of the traces that the request belongs to, by start; empty if nothing is known of it.

    The sessions of one HTTP request are named after it with "/" and a suffix.
    """
    known = list(spans)
    traces = {span.trace_id for span in known if _names(span, request_id)}
    return sorted((span for span in known if span.trace_id in traces), key=lambda span: span.start_ns)


def chrome_trace(spans: Sequence[SpanRecord]) -> dict[str, Any]:
    """One process row for each process, and in it a lane for each span that overlaps those before it."""
    processes = {name: index + 1 for index, name in enumerate(dict.fromkeys(map(_process, spans)))}
    rows = [_process_name(name, number) for name, number in processes.items()]
    lanes: dict[str, list[int]] = {name: [] for name in processes}
    events = [_event(span, processes[_process(span)], _lane(lanes[_process(span)], span)) for span in spans]
    return {"traceEvents": [*rows, *events], "displayTimeUnit": "ms"}


def _names(span: SpanRecord, request_id: str) -> bool:
    named = str(span.attributes.get(REQUEST_ID, ""))
    return named == request_id or named.startswith(f"{request_id}/")


def _process(span: SpanRecord) -> str:
    return f"{span.service} {span.instance}"


def _process_name(name: str, number: int) -> dict[str, Any]:
    return {"name": "process_name", "ph": "M", "pid": number, "tid": 0, "args": {"name": name}}


def _lane(ends_ns: list[int], span: SpanRecord) -> int:
    """The first lane that is free when the span starts; `ends_ns` holds each lane's last end."""
    lane = next((index for index, end_ns in enumerate(ends_ns) if end_ns <= span.start_ns), len(ends_ns))
    ends_ns[lane : lane + 1] = [span.end_ns]
    return lane


def _event(span: SpanRecord, process: int, lane: int) -> dict[str, Any]:
    error = {"error": span.error} if span.error else {}
    return {
        "name": span.name,
        "ph": "X",
        "ts": span.start_ns / 1000,
        "dur": (span.end_ns - span.start_ns) / 1000,
        "pid": process,
        "tid": lane,
        "args": {**span.attributes, **error, "trace_id": span.trace_id, "span_id": span.span_id},
    }

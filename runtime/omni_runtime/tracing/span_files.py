"""Spans as JSON lines in a folder, one file for each process: what a line holds, and how to read them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class SpanRecord:
    """Times are nanoseconds since 1970 by the clock of the process's machine."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    service: str
    instance: str
    start_ns: int
    end_ns: int
    error: str
    attributes: dict[str, Any]


def read_spans(directory: Path) -> Iterator[SpanRecord]:
    """All spans in the folder's files; a line that a killed process left unfinished is left out."""
    for path in sorted(directory.glob("*.jsonl")):
        with path.open() as lines:
            for line in lines:
                if line.endswith("\n"):
                    yield SpanRecord(**json.loads(line))

"""Writes spans as JSON lines into a folder, one file for each process."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from omni_runtime.tracing.span_files import SpanRecord

FILE_BYTES = 64 * 2**20
"""A full file makes room for a new one and is kept until the next is full."""


class SpanFileExporter(SpanExporter):
    def __init__(self, directory: Path, service: str, instance: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / f"{service}-{instance.replace('/', '_')}-{os.getpid()}.jsonl"
        self._service = service
        self._instance = instance
        self._file = self._path.open("a", buffering=1)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._file.writelines(json.dumps(asdict(self._record(span))) + "\n" for span in spans)
        if self._file.tell() > FILE_BYTES:
            self._file.close()
            self._path.replace(self._path.with_suffix(".old.jsonl"))
            self._file = self._path.open("a", buffering=1)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self._file.close()

    def _record(self, span: ReadableSpan) -> SpanRecord:
        context = span.get_span_context()
        assert context is not None
        return SpanRecord(
            trace_id=f"{context.trace_id:032x}",
            span_id=f"{context.span_id:016x}",
            parent_id=f"{span.parent.span_id:016x}" if span.parent else "",
            name=span.name,
            service=self._service,
            instance=self._instance,
            start_ns=span.start_time or 0,
            end_ns=span.end_time or 0,
            error=span.status.description or "",
            attributes=dict(span.attributes or {}),
        )

"""Spans of an engine's steps, written as a Chrome trace: for engines whose library has no profiler of its own."""

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic_ns

from omni_runtime.engines.protocol import Profile


@dataclass(frozen=True)
class Span:
    name: str
    began_ns: int
    ended_ns: int

    @property
    def took_us(self) -> float:
        return (self.ended_ns - self.began_ns) / 1000


@dataclass
class Recording:
    """Takes `max_steps` spans, then writes itself; further ones are ignored."""

    trace: Path
    max_steps: int
    spans: list[Span] = field(default_factory=list)
    is_written: bool = False

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began_ns = monotonic_ns()
        yield
        if not self.is_written:
            self.spans.append(Span(name, began_ns, monotonic_ns()))
            if len(self.spans) == self.max_steps:
                self._write()

    def finished(self) -> Profile:
        if not self.is_written:
            self._write()
        return Profile(self.trace, len(self.spans))

    def _write(self) -> None:
        events = [
            {"name": span.name, "ph": "X", "pid": 0, "tid": 0, "ts": span.began_ns / 1000, "dur": span.took_us}
            for span in self.spans
        ]
        write_whole(self.trace, gzip.compress(json.dumps({"traceEvents": events}).encode()))
        self.is_written = True


def write_whole(path: Path, data: bytes) -> None:
    """A file of that name is complete, whenever one looks."""
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_bytes(data)
    unfinished.rename(path)

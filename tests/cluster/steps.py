"""One line per step with the time it took, so that a slow set-up shows where it is slow."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO


@dataclass
class Steps:
    """Prints `seconds  what  (note)` as each step ends; `note` is what a step says about itself."""

    out: TextIO = field(default_factory=lambda: sys.stdout)
    started: float = field(default_factory=time.monotonic)

    @contextmanager
    def step(self, what: str) -> Iterator[Step]:
        step = Step(what)
        begun = time.monotonic()
        try:
            yield step
        except BaseException:
            self.line(time.monotonic() - begun, f"{what}: FAILED")
            raise
        self.line(time.monotonic() - begun, step.text)

    def line(self, seconds: float, text: str) -> None:
        print(f"{seconds:7.1f} s  {text}", file=self.out, flush=True)

    def total(self, text: str) -> None:
        self.line(time.monotonic() - self.started, text)


@dataclass
class Step:
    what: str
    note: str = ""

    @property
    def text(self) -> str:
        return f"{self.what} ({self.note})" if self.note else self.what

"""Records turns of the step thread with torch's profiler. Everything but the questions happens on that thread."""

import gzip
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypeVar

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from omni_runtime.engines.protocol import Profile

logger = logging.getLogger(__name__)

T = TypeVar("T")


class StepProfile:
    """Each turn is a span with the request's name, around the operators that it called. Ends itself after enough."""

    def __init__(self, trace: Path, max_steps: int, device: torch.device) -> None:
        self.is_recording = False
        self._trace = trace
        self._max_steps = max_steps
        self._steps = 0
        self._failure: OSError | None = None
        on_device = {"cuda": ProfilerActivity.CUDA, "xpu": ProfilerActivity.XPU}.get(device.type)
        self._profiler = profile(activities=[ProfilerActivity.CPU, *([on_device] if on_device else [])])

    def start(self) -> None:
        self._profiler.start()
        self.is_recording = True

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        with record_function(name):
            yield
        self._steps += 1
        if self._steps == self._max_steps:
            self.finish()

    def finish(self) -> None:
        """Writes the trace, once. A disk that is full must not fail the request whose turn it is."""
        if self.is_recording:
            self.is_recording = False
            self._profiler.stop()
            try:
                self._write()
            except OSError as error:
                logger.exception("the trace %s was not written", self._trace)
                self._failure = error

    def result(self) -> Profile:
        if self._failure is not None:
            raise self._failure
        return Profile(self._trace, self._steps)

    def _write(self) -> None:
        plain, packed = (self._trace.with_name(f".{self._trace.name}{end}") for end in (".plain", ".packed"))
        try:
            self._profiler.export_chrome_trace(str(plain))
            with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=3) as target:
                shutil.copyfileobj(source, target)
            packed.rename(self._trace)
        finally:
            plain.unlink(missing_ok=True)
            packed.unlink(missing_ok=True)


def watched(work: Iterator[T | None], name: str, recording: Callable[[], StepProfile | None]) -> Iterator[T | None]:
    """The same work, its turns being recorded for as long as there is a recording."""
    for number in count(1):
        profile = recording()
        if profile is None:
            items, has_ended = _turn(work)
        else:
            with profile.turn(f"{name} turn {number}"):
                items, has_ended = _turn(work)
        yield from items
        if has_ended:
            return
        del items
        yield None


def _turn(work: Iterator[T | None]) -> tuple[list[T], bool]:
    """What the work hands out until its turn ends, and whether that was the last one."""
    items: list[T] = []
    for item in work:
        if item is None:
            return items, False
        items.append(item)
    return items, True

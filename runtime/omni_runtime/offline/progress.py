"""How far a call of `generate` is: a line on stderr that is written anew as prompts are answered."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

CLEAR_LINE = "\r\x1b[K"
REDRAWN_EVERY_S = 0.1


@dataclass
class Progress:
    """On a terminal the line lives; elsewhere only its last state is written, a line of its own."""

    total: int
    stream: TextIO
    clock: Callable[[], float]
    is_terminal: bool
    _done: int = 0
    _failed: int = 0
    _drawn_s: float = field(default=0.0)
    _began_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._began_s = self.clock()

    def answered(self, has_failed: bool) -> None:
        self._done += 1
        self._failed += has_failed
        now_s = self.clock()
        is_last = self._done == self.total
        if is_last:
            start, end = (CLEAR_LINE, "\n") if self.is_terminal else ("", "\n")
        elif self.is_terminal and now_s - self._drawn_s >= REDRAWN_EVERY_S:
            start, end = CLEAR_LINE, ""
        else:
            return
        self._drawn_s = now_s
        self.stream.write(f"{start}{self.line(now_s)}{end}")
        self.stream.flush()

    def line(self, now_s: float) -> str:
        took_s = max(now_s - self._began_s, 1e-9)
        failed = f", {self._failed} failed" if self._failed else ""
        left_s = (self.total - self._done) * took_s / max(self._done, 1)
        left = f", about {left_s:.0f} s left" if self._done < self.total else ""
        return f"prompts {self._done}/{self.total} in {took_s:.1f} s, {self._done / took_s:.2f}/s{failed}{left}"

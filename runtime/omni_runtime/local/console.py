"""What the person at the terminal sees: one line for each process that gets ready, and the processes' own log lines.

On a terminal the last line is alive while processes start; elsewhere each change is a line of its own.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from omni_runtime.local.log_line import read_log_line

CLEAR_LINE = "\r\x1b[K"
SUPERVISOR = "serve"


@dataclass
class Starting:
    since_s: float
    doing: str = ""


@dataclass
class Console:
    stream: TextIO
    clock: Callable[[], float]
    name_width: int
    is_terminal: bool = False
    columns: int = 100
    log_json: bool = False
    _starting: dict[str, Starting] = field(default_factory=dict)
    _shows_status: bool = False

    def say(self, text: str, process: str = SUPERVISOR) -> None:
        """A line of the supervisor's own about a process."""
        if self.log_json:
            self._print(json.dumps({"level": "info", "stage": process, "message": text}))
        else:
            self._print(f"{process:{self.name_width}}   {text}")

    def log(self, process: str, line: str) -> None:
        """A line that the process itself printed."""
        read = read_log_line(line)
        if process in self._starting:
            self._starting[process].doing = read.message
        if self.log_json:
            self._print(line if line.startswith("{") else json.dumps({"stage": process, "message": line}))
        else:
            self._print("\n".join(f"{process:{self.name_width}} | {part}" for part in read.text.splitlines()))

    def starting(self, process: str) -> None:
        self._starting[process] = Starting(self.clock())
        if self.is_terminal:
            self.refresh()
        else:
            self.say("starting", process)

    def ready(self, process: str) -> None:
        started = self._starting.pop(process)
        self.say(f"ready in {self.clock() - started.since_s:.1f} s", process)

    def ended(self, process: str, text: str) -> None:
        self._starting.pop(process, None)
        self.say(text, process)

    def refresh(self) -> None:
        """Redraw the living line; call it now and then so that its seconds move."""
        if self.is_terminal and not self.log_json:
            self._erase()
            self._draw()

    def _print(self, line: str) -> None:
        self._erase()
        self.stream.write(line + "\n")
        if self.is_terminal and not self.log_json:
            self._draw()
        self.stream.flush()

    def _erase(self) -> None:
        if self._shows_status:
            self.stream.write(CLEAR_LINE)
            self._shows_status = False

    def _draw(self) -> None:
        if not self._starting:
            return
        text = ", ".join(self._progress(name, one) for name, one in self._starting.items())
        self.stream.write(text[: self.columns - 1])
        self.stream.flush()
        self._shows_status = True

    def _progress(self, process: str, starting: Starting) -> str:
        doing = f" ({starting.doing})" if starting.doing else ""
        return f"{process} {self.clock() - starting.since_s:.0f} s{doing}"

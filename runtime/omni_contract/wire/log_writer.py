"""A log handler that never waits for whoever reads the log.

Where the collector's disk is full or a reader has stopped, the pipe behind standard error fills up, and a process that
writes into it stands still with all its requests. Here a thread of its own writes; lines beyond a bound are dropped,
and how many is told as soon as somebody reads again.
"""

import logging
import queue
import threading
from contextlib import suppress
from logging.handlers import QueueHandler
from typing import TextIO

MOST_LINES = 10_000
LAST_WORDS_S = 1.0
"""How long the end of the process waits for lines that nobody has read."""


class PatientHandler(QueueHandler):
    """Formats where the line is logged, since a line's fields belong to its task, and writes elsewhere."""

    def __init__(self, stream: TextIO, most_lines: int = MOST_LINES) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue(most_lines)
        super().__init__(self._lines)
        self._stream = stream
        self._dropped = 0
        self._writer = threading.Thread(target=self._write, name="log", daemon=True)
        self._writer.start()

    def prepare(self, record: logging.LogRecord) -> str:
        return self.format(record)

    def enqueue(self, record: str) -> None:  # type: ignore[override] # what `prepare` gave
        try:
            self._lines.put_nowait(record)
        except queue.Full:
            self._dropped += 1

    def pass_on(self, line: str) -> None:
        """A line that is written already, after all that was logged before it."""
        self.enqueue(line)

    def close(self) -> None:
        """The lines that wait are written, if they are read within a second."""
        with suppress(queue.Full):
            self._lines.put_nowait(None)
        self._writer.join(LAST_WORDS_S)
        super().close()

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            with suppress(OSError):
                self._stream.write(f"{self._told_dropped()}{line}\n")
                self._stream.flush()

    def _told_dropped(self) -> str:
        dropped, self._dropped = self._dropped, 0
        if not dropped:
            return ""
        text = f"{dropped} lines of log were dropped, as nobody read them"
        return self.format(logging.LogRecord(__name__, logging.WARNING, __file__, 0, text, None, None)) + "\n"

"""Statistics as JSON lines: a file each for requests, their stages and their edges, written by a thread of its own.

A disk that is full or slow never holds up a request: what cannot be written is lost, counted, and told once.
"""

import json
import logging
import os
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from omni_runtime.statistics.line_file import LineFile
from omni_runtime.statistics.request import RequestStats

logger = logging.getLogger(__name__)

FILE_BYTES = 64 * 2**20
QUEUE_REQUESTS = 10_000
BATCH_REQUESTS = 500
CLOSE_S = 5.0
KINDS = ("overall", "stages", "edges")
CLOCKS = ("began_s", "ended_s")
"""Mean nothing outside of the process."""


class StatsFilesError(Exception):
    """No files can be made there; the message says why."""


@dataclass(frozen=True)
class Ended:
    stats: RequestStats
    at: datetime


class StatsFiles:
    """`written` and `lost` count requests, each of which is a line in `overall` and more in the other two."""

    def __init__(
        self, directory: Path, process: str, file_bytes: int = FILE_BYTES, queue_requests: int = QUEUE_REQUESTS
    ) -> None:
        """Raises StatsFilesError if the folder cannot be made or written to."""
        _check_folder(directory)
        name = f"{process.replace('/', '_')}-{os.getpid()}"
        self.written = self.lost = 0
        self._directory = directory
        self._files = {kind: LineFile(directory / f"{name}.{kind}.stats.jsonl", file_bytes) for kind in KINDS}
        self._queue: queue.Queue[Ended | None] = queue.Queue(queue_requests)
        self._is_failing = False
        self._thread = threading.Thread(target=self._run, name="stats-files", daemon=True)
        self._thread.start()

    def add(self, stats: RequestStats, at: datetime) -> None:
        """Returns at once."""
        try:
            self._queue.put_nowait(Ended(stats, at))
        except queue.Full:
            self._lose(1, "it takes longer to write them than to make them")

    def close(self) -> None:
        """Returns once all is written, or after some seconds."""
        try:
            self._queue.put(None, timeout=CLOSE_S)
        except queue.Full:
            return
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        is_open = True
        while is_open:
            batch = [self._queue.get(), *self._at_once()]
            is_open = None not in batch
            self._write([one for one in batch if one is not None])
        for file in self._files.values():
            file.close()

    def _at_once(self) -> Iterator[Ended | None]:
        """What waits behind the first, so that a burst is a few large writes."""
        for _ in range(BATCH_REQUESTS):
            try:
                yield self._queue.get_nowait()
            except queue.Empty:
                return

    def _write(self, batch: Sequence[Ended]) -> None:
        if not batch:
            return
        try:
            for kind, file in self._files.items():
                file.append(b"".join(_line(record) for one in batch for record in records_of(one, kind)))
        except OSError as error:
            self._lose(len(batch), error.strerror or str(error))
            return
        self.written += len(batch)
        if self._is_failing:
            self._is_failing = False
            logger.info("statistics are written again; those of %d requests are lost", self.lost)

    def _lose(self, count: int, reason: str) -> None:
        self.lost += count
        if not self._is_failing:
            self._is_failing = True
            logger.warning("statistics are lost, requests go on: %s: %s", self._directory, reason)


def records_of(ended: Ended, kind: str) -> list[dict[str, Any]]:
    """The lines of one request in the file of a kind."""
    stats = ended.stats
    name = {"time": ended.at.isoformat(timespec="milliseconds"), "request_id": stats.request_id}
    match kind:
        case "stages":
            return [
                name | {"wall_time_ms": round(stage.wall_time_ms, 3)} | _figures(asdict(stage))
                for stage in stats.stages
            ]
        case "edges":
            return [
                name | {"total_time_ms": round(edge.total_time_ms, 3)} | _figures(asdict(edge)) for edge in stats.edges
            ]
        case _:
            return [name | {"outcome": stats.outcome, "retries": stats.retries} | _figures(asdict(stats.e2e))]


def _figures(fields: dict[str, Any]) -> dict[str, Any]:
    """To the microsecond and the byte; more digits mean nothing."""
    return {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in fields.items()
        if name not in CLOCKS
    }


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def _check_folder(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StatsFilesError(f"no statistics can be written to {directory}: {error.strerror}") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise StatsFilesError(f"no statistics can be written to {directory}: it may not be written to")

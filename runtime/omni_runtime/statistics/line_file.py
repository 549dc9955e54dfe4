"""A file of lines that is bounded, and whose lines are whole, whatever happens to the disk."""

import os
from contextlib import suppress
from pathlib import Path


class LineFile:
    """A full file makes room for a new one, and is kept until the next is full. Not for two threads."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._descriptor: int | None = None

    def append(self, lines: bytes) -> None:
        """All of it, or nothing: then it raises OSError, and may be tried again."""
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        size_bytes = os.fstat(self._descriptor).st_size
        try:
            _write_all(self._descriptor, lines)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, size_bytes)
            raise
        if size_bytes + len(lines) >= self._limit_bytes:
            self.close()
            self._path.replace(self._path.with_suffix(".old.jsonl"))

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]

"""Memory that the worker shares with vLLM's process: each step's rows lie there until the worker has copied them.

The worker makes it, and it is gone with the processes that have it open. Steps lie one behind the other, and what has
been read is free again in the same order. So each end writes one number that the other one reads: where a step begins
travels in its message, and how far all is read stands in front of the rows.
"""

import mmap
import os
from typing import Final, NamedTuple

RING_BYTES: Final = 16 * 2**20
LARGEST_SHARE: Final = 8
"""A step may take a part of the ring that has so many."""
ALIGNMENT: Final = 64
ROWS_AT: Final = mmap.PAGESIZE
"""Devices lock whole pages."""


class Way(NamedTuple):
    """From vLLM's process to the worker."""

    socket: str
    """Its address."""
    ring: str
    """The path of the memory."""


class RingReader:
    """Steps that have come; positions count all bytes that were ever written."""

    def __init__(self, size_bytes: int = RING_BYTES) -> None:
        self._descriptor = os.memfd_create("omni-states", os.MFD_CLOEXEC)
        os.ftruncate(self._descriptor, ROWS_AT + size_bytes)
        self._read, self._room = _mapped(self._descriptor)

    @property
    def path(self) -> str:
        """By which processes that this one has started open it, until it is closed."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def step(self, begin: int, size_bytes: int) -> memoryview:
        """The rows that begin there, to be copied before they are freed."""
        start = begin % len(self._room)
        return self._room[start : start + size_bytes]

    def free(self, end: int) -> None:
        """All that comes before this position."""
        self._read[0] = end

    def close(self) -> None:
        os.close(self._descriptor)


class RingWriter:
    """The other end."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._read, self.room = _mapped(descriptor)
        finally:
            os.close(descriptor)
        self._end = 0
        self._largest_bytes = len(self.room) // LARGEST_SHARE

    def place(self, size_bytes: int) -> int | None:
        """The position of room for so many bytes in one piece; None if they are too many, or not enough is read yet."""
        size = len(self.room)
        begin = -(-self._end // ALIGNMENT) * ALIGNMENT
        if begin % size + size_bytes > size:
            begin += size - begin % size
        if size_bytes > self._largest_bytes or begin + size_bytes - self._read[0] > size:
            return None
        self._end = begin + size_bytes
        return begin


def _mapped(descriptor: int) -> tuple[memoryview, memoryview]:
    """How far all is read, and the room for rows."""
    whole = memoryview(mmap.mmap(descriptor, 0))
    return whole[:8].cast("Q"), whole[ROWS_AT:]

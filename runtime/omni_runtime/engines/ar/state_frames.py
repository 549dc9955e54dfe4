"""The message of a step: whose rows they are, where they are, and how they are cut into frames. Both ends go by it."""

from collections.abc import Sequence
from itertools import accumulate
from struct import Struct

IN_MESSAGE = -1
"""Where rows are that do not lie in the ring."""
START = Struct("=qq")
"""Of the first frame: where the rows begin, and how many lines the table has. The table follows, then JSON."""
LINE_BYTES = 24
"""A request's key, the first position that its rows are of, and how many they are."""
OWN_FRAME_BYTES = 64 * 2**10


def lines_of_frames(sizes_bytes: Sequence[int]) -> list[slice]:
    """The lines of a step's table that share a frame, by the size of each line's rows in a layer.

    Many rows have a frame of their own, so that they can be passed on where they lie without holding others' memory.
    """
    if not sizes_bytes or max(sizes_bytes) < OWN_FRAME_BYTES:
        return [slice(0, len(sizes_bytes))]
    frames: list[slice] = []
    begun = 0
    for line, size_bytes in enumerate(sizes_bytes):
        if size_bytes >= OWN_FRAME_BYTES:
            if begun < line:
                frames.append(slice(begun, line))
            frames.append(slice(line, line + 1))
            begun = line + 1
    if begun < len(sizes_bytes):
        frames.append(slice(begun, len(sizes_bytes)))
    return frames


def pieces_of_frames(sizes_bytes: Sequence[int]) -> list[slice]:
    """What of a layer's bytes each frame has."""
    ends = [0, *accumulate(sizes_bytes)]
    return [slice(ends[lines.start], ends[lines.stop]) for lines in lines_of_frames(sizes_bytes)]


def head_of(begin: int, table: bytes, head: bytes) -> bytes:
    """The first frame."""
    return START.pack(begin, len(table) // LINE_BYTES) + table + head


def read_head(frame: memoryview) -> tuple[int, list[list[int]], bytes]:
    """Where the rows begin, the table's lines, and the JSON."""
    begin, lines = START.unpack_from(frame)
    end = START.size + lines * LINE_BYTES
    numbers = frame[START.size : end].cast("q").tolist()
    return begin, [numbers[place : place + 3] for place in range(0, len(numbers), 3)], bytes(frame[end:])

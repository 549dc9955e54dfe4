"""How the rows of a step are cut into the frames of its message. Pure; both ends go by it."""

from collections.abc import Sequence

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

"""Which part of an arena is taken. Pure: offsets and sizes, no memory."""

from bisect import bisect

ALIGNMENT = 64
"""Every block starts at a multiple of this, as the codec's buffers do."""


class Allocator:
    """First fit over free runs in the order of their offsets, so that the same few blocks are used again and again."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes - size_bytes % ALIGNMENT
        self._free: list[tuple[int, int]] = [(0, self.size_bytes)] if self.size_bytes else []
        self._taken: dict[int, int] = {}

    @property
    def used_bytes(self) -> int:
        return sum(self._taken.values())

    @property
    def blocks(self) -> int:
        return len(self._taken)

    @property
    def largest_free_bytes(self) -> int:
        return max((size for _, size in self._free), default=0)

    def allocate(self, size_bytes: int) -> int | None:
        """The offset of a block with room for so many bytes; None if no free run is long enough."""
        wanted = _rounded(size_bytes)
        for index, (offset, size) in enumerate(self._free):
            if size >= wanted:
                self._free[index : index + 1] = [(offset + wanted, size - wanted)] if size > wanted else []
                self._taken[offset] = wanted
                return offset
        return None

    def free(self, offset: int) -> None:
        """Raises KeyError for an offset at which no block starts."""
        start, end = offset, offset + self._taken.pop(offset)
        index = bisect(self._free, (offset, 0))
        first, last = index, index
        if index > 0 and sum(self._free[index - 1]) == start:
            first, start = index - 1, self._free[index - 1][0]
        if index < len(self._free) and self._free[index][0] == end:
            last, end = index + 1, sum(self._free[index])
        self._free[first:last] = [(start, end - start)]


def _rounded(size_bytes: int) -> int:
    return max(size_bytes + -size_bytes % ALIGNMENT, ALIGNMENT)

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from omni_runtime.connectors.shm.allocator import ALIGNMENT, Allocator

SIZE_BYTES = 4096


class AnyOrder(RuleBasedStateMachine):
    """Takes and frees in any order; what is taken is remembered beside."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = Allocator(SIZE_BYTES)
        self.taken: dict[int, int] = {}

    @rule(size_bytes=st.integers(0, SIZE_BYTES + ALIGNMENT))
    def take(self, size_bytes: int) -> None:
        fits = size_bytes <= self.blocks.largest_free_bytes and self.blocks.largest_free_bytes > 0
        offset = self.blocks.allocate(size_bytes)
        assert (offset is not None) == fits
        if offset is not None:
            assert offset % ALIGNMENT == 0
            self.taken[offset] = max(size_bytes, 1)

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from(sorted(self.taken)))
        del self.taken[offset]
        self.blocks.free(offset)

    @invariant()
    def no_two_blocks_overlap(self) -> None:
        ends = 0
        for offset, size_bytes in sorted(self.taken.items()):
            assert offset >= ends
            ends = offset + size_bytes
        assert ends <= SIZE_BYTES

    @invariant()
    def every_byte_is_either_taken_or_free(self) -> None:
        rounded = sum(-(-size_bytes // ALIGNMENT) * ALIGNMENT for size_bytes in self.taken.values())
        assert self.blocks.used_bytes == rounded
        assert self.blocks.blocks == len(self.taken)

    @invariant()
    def free_neighbours_are_one(self) -> None:
        """The longest run between taken blocks is what the allocator says it can give."""
        edges = [(offset, offset + -(-size // ALIGNMENT) * ALIGNMENT) for offset, size in sorted(self.taken.items())]
        starts = [0, *(end for _, end in edges)]
        ends = [*(start for start, _ in edges), SIZE_BYTES]
        assert self.blocks.largest_free_bytes == max(end - start for start, end in zip(starts, ends, strict=True))

    def teardown(self) -> None:
        for offset in self.taken:
            self.blocks.free(offset)
        assert self.blocks.largest_free_bytes == SIZE_BYTES
        assert self.blocks.used_bytes == 0


TestAnyOrder = AnyOrder.TestCase


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_a_block_that_was_freed_is_the_next_to_be_used(sizes: list[int]) -> None:
    blocks = Allocator(2**20)
    first = blocks.allocate(1000)
    assert first is not None
    for size_bytes in sizes:
        blocks.allocate(size_bytes)

    blocks.free(first)

    assert blocks.allocate(1000) == first


def test_an_offset_at_which_no_block_starts_cannot_be_freed() -> None:
    blocks = Allocator(SIZE_BYTES)
    offset = blocks.allocate(100)
    assert offset is not None
    blocks.free(offset)

    with pytest.raises(KeyError):
        blocks.free(offset)
    with pytest.raises(KeyError):
        blocks.free(offset + ALIGNMENT)

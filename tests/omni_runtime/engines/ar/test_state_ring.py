"""Memory that two ends share, and where steps lie in it."""

from mmap import PAGESIZE
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_runtime.engines.ar.state_ring import LARGEST_SHARE, RingReader, RingWriter

SIZE = 4 * PAGESIZE
LARGEST = SIZE // LARGEST_SHARE


@pytest.fixture
def ends():
    reader = RingReader(SIZE)
    yield reader, RingWriter(reader.path)
    reader.close()


def test_what_one_end_writes_the_other_reads(ends):
    reader, writer = ends
    begin = writer.place(5)
    writer.room[begin : begin + 5] = b"hello"
    assert bytes(reader.step(begin, 5)) == b"hello"


def test_nothing_is_written_over_what_is_not_read(ends):
    reader, writer = ends
    begins = [writer.place(LARGEST) for _ in range(LARGEST_SHARE)]
    assert begins == [LARGEST * number for number in range(LARGEST_SHARE)]
    assert writer.place(1) is None
    reader.free(begins[0] + LARGEST)
    assert writer.place(LARGEST) == SIZE
    assert writer.place(1) is None


def test_a_step_that_would_leave_no_room_for_others_is_not_placed(ends):
    assert ends[1].place(LARGEST + 1) is None


@given(st.lists(st.tuples(st.integers(1, LARGEST), st.booleans())))
def test_steps_lie_in_one_piece_and_never_over_each_other(steps):
    reader = RingReader(SIZE)
    writer, unread = RingWriter(reader.path), []
    for size, is_read in steps:
        begin = writer.place(size)
        if begin is not None:
            assert begin % SIZE + size <= SIZE
            places = {place % SIZE for place in range(begin, begin + size)}
            assert not any(places & others for _, others in unread)
            unread.append((begin + size, places))
        if is_read and unread:
            reader.free(unread.pop(0)[0])
    reader.close()


def test_it_is_gone_with_its_ends():
    reader = RingReader(SIZE)
    path = Path(reader.path)
    reader.close()
    assert not path.exists()

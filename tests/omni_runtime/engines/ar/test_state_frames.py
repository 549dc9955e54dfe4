"""The rows of a step as frames of its message."""

import pytest

from omni_runtime.engines.ar.state_frames import OWN_FRAME_BYTES, lines_of_frames

MANY, FEW = OWN_FRAME_BYTES, OWN_FRAME_BYTES - 1


@pytest.mark.parametrize(
    ("sizes", "lines"),
    [
        ([], [(0, 0)]),
        ([FEW, FEW, FEW], [(0, 3)]),
        ([MANY], [(0, 1)]),
        ([FEW, FEW, MANY, MANY, FEW], [(0, 2), (2, 3), (3, 4), (4, 5)]),
        ([MANY, FEW], [(0, 1), (1, 2)]),
    ],
)
def test_many_rows_of_a_request_have_a_frame_of_their_own(sizes: list[int], lines: list[tuple[int, int]]):
    assert [(cut.start, cut.stop) for cut in lines_of_frames(sizes)] == lines

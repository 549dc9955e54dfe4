from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy
from hypothesis import given
from hypothesis import strategies as st

from omni_runtime.families.codec_reach import Convolution, Span, Upsampling
from omni_runtime.families.codec_stages import Stage, route, through

CONVOLUTIONS = st.builds(Convolution, before=st.integers(0, 4), after=st.integers(0, 4))
UPSAMPLINGS = st.integers(1, 3).flatmap(
    lambda rate: st.builds(Upsampling, st.just(rate), st.just(2 * rate), st.integers(0, rate), st.integers(0, rate))
)
STAGES = st.lists(st.lists(st.one_of(CONVOLUTIONS, UPSAMPLINGS), min_size=1, max_size=3), min_size=1, max_size=4)


def heard(layers: Sequence[Convolution | Upsampling], row: Any) -> Any:
    """What the layers make of a row of integers: each neighbour has a weight of its own, and beyond the ends is 0."""
    for layer in layers:
        if isinstance(layer, Convolution):
            made = numpy.convolve(row, numpy.arange(layer.before + layer.after + 1) + 1)
            row = made[layer.after : layer.after + len(row)]
        else:
            spread = numpy.zeros((len(row) - 1) * layer.rate + 1, dtype=row.dtype)
            spread[:: layer.rate] = row
            made = numpy.convolve(spread, numpy.arange(layer.kernel) + 1)
            row = made[layer.cut_left : len(made) - layer.cut_right]
    return row


def staged(stages: Sequence[Sequence[Convolution | Upsampling]]) -> list[Stage]:
    return [Stage(layers, partial(heard, layers)) for layers in stages]


@given(STAGES, st.lists(st.integers(0, 1000), max_size=5), st.integers(14, 24))
def test_pieces_side_by_side_are_the_whole(layers, cuts, frames):
    row, stages = numpy.arange(1, frames + 1) ** 2, staged(layers)
    whole = heard([layer for stage in layers for layer in stage], row)
    borders = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    for start, end in pairwise(borders):
        way = route(stages, frames, Span(start, end))
        made: Any = through(stages, row[way.taken.start : way.taken.end], way.kept)
        assert made.tolist() == whole[start:end].tolist()


def test_a_stage_hands_on_only_what_is_heard_behind_it():
    """A stage that looks far, at the lowest rate, and one at ten times its rate that looks as many places far."""
    stages = staged([[Convolution(10, 10)], [Upsampling(10, 10, 0, 0), Convolution(10, 10)], [Convolution(10, 10)]])
    way = route(stages, 1000, Span(5000, 5100))
    assert way.taken == Span(488, 522)
    assert way.kept == (Span(10, 24), Span(10, 130), Span(10, 110))


def test_pieces_of_one_way_differ_in_their_place_alone():
    stages = staged([[Convolution(3, 3)], [Upsampling(2, 4, 1, 1), Convolution(3)]])
    ways = [route(stages, 100, Span(start, start + 20)).way for start in (0, 40, 60, 180)]
    assert ways[1] == ways[2]
    assert len(set(ways)) == 3

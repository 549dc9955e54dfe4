from hypothesis import given
from hypothesis import strategies as st

from omni_runtime.families.codec_reach import Convolution, Span, Upsampling, length, needed

LAYERS = st.lists(
    st.one_of(
        st.builds(Convolution, before=st.integers(0, 4), after=st.integers(0, 4)),
        st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(0, 2)).map(
            lambda drawn: Upsampling(drawn[0], drawn[0] + drawn[1], min(drawn[1], drawn[2]), 0)
        ),
    ),
    min_size=1,
    max_size=4,
)


def looked_at(layers: list[Convolution | Upsampling], position: int) -> set[int]:
    """The inputs of the first layer that one output hears, found by looking at each connection."""
    positions = {position}
    for layer in reversed(layers):
        positions = {taken for made in positions for taken in connected(layer, made)}
    return positions


def connected(layer: Convolution | Upsampling, made: int) -> set[int]:
    if isinstance(layer, Convolution):
        return set(range(made - layer.before, made + layer.after + 1))
    uncut = made + layer.cut_left
    return {taken for taken in range(-50, 50) if taken * layer.rate <= uncut < taken * layer.rate + layer.kernel}


@given(LAYERS, st.integers(-5, 5), st.integers(1, 3))
def test_what_a_span_needs_is_what_its_ends_hear(layers, start, width):
    heard = {taken for made in range(start, start + width) for taken in looked_at(layers, made)}
    span = needed(layers, Span(start, start + width))
    assert heard <= set(range(span.start, span.end))
    assert {span.start, span.end - 1} <= heard


def test_a_transposed_convolution_makes_what_its_cuts_leave():
    assert length([Upsampling(rate=8, kernel=16, cut_left=8, cut_right=8)], 10) == 72
    assert length([Convolution(6), Upsampling(2, 2, 0, 0)], 10) == 20

"""How far a codec's convolutions look: which inputs a span of samples is made from. Pure, for exact chunks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """From `start` up to, not including, `end`; before its input begins, a start may be negative."""

    start: int
    end: int


@dataclass(frozen=True)
class Convolution:
    """A layer that keeps the rate and looks `before` and `after` each position."""

    before: int
    after: int = 0

    def needs(self, made: Span) -> Span:
        return Span(made.start - self.before, made.end + self.after)

    def length(self, taken: int) -> int:
        return taken


@dataclass(frozen=True)
class Upsampling:
    """A transposed convolution, cut on the left and on the right."""

    rate: int
    kernel: int
    cut_left: int
    cut_right: int

    def needs(self, made: Span) -> Span:
        first, last = made.start + self.cut_left, made.end - 1 + self.cut_left
        return Span(-((self.kernel - 1 - first) // self.rate), last // self.rate + 1)

    def length(self, taken: int) -> int:
        return (taken - 1) * self.rate + self.kernel - self.cut_left - self.cut_right


def needed(layers: Sequence[Convolution | Upsampling], made: Span) -> Span:
    """What the first of the layers must be given, so that the last makes this span."""
    for layer in reversed(layers):
        made = layer.needs(made)
    return made


def length(layers: Iterable[Convolution | Upsampling], taken: int) -> int:
    """How much the last layer makes of so much for the first."""
    for layer in layers:
        taken = layer.length(taken)
    return taken

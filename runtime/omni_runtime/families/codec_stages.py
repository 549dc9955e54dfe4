"""A codec's convolutions in stages, each at a higher rate than the one before, and how a piece goes through them.

What a piece needs around itself becomes less from stage to stage, and a stage hands on only what is heard behind it.
So a border between two pieces costs little: what is done twice is done where a frame is cheap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from omni_runtime.families.codec_reach import Convolution, Span, Upsampling, length, needed

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Stage:
    """`run` takes and makes (streams, channels, places) by the `layers`, of several side by side the widest."""

    layers: Sequence[Convolution | Upsampling]
    run: "Callable[[torch.Tensor], torch.Tensor]"

    @property
    def rate(self) -> int:
        return prod(layer.rate for layer in self.layers if isinstance(layer, Upsampling))


@dataclass(frozen=True)
class Route:
    """What the first stage takes of that which is there, and what each keeps of that which it makes."""

    taken: Span
    kept: tuple[Span, ...]

    @property
    def way(self) -> tuple[int, tuple[Span, ...]]:
        """Pieces of one way can go together."""
        return self.taken.end - self.taken.start, self.kept


def route(stages: Sequence[Stage], there: int, made: Span) -> Route:
    """How a span of what the last stage makes comes out of so much for the first."""
    spans, lengths = [made], [there]
    for stage in stages:
        lengths.append(length(stage.layers, lengths[-1]))
    for stage, given in zip(reversed(stages), reversed(lengths[:-1]), strict=True):
        heard = needed(stage.layers, spans[0])
        spans.insert(0, Span(max(0, heard.start), min(given, heard.end)))
    begins = [span.start * stage.rate for stage, span in zip(stages, spans, strict=False)]
    kept = [Span(span.start - begin, span.end - begin) for begin, span in zip(begins, spans[1:], strict=True)]
    return Route(spans[0], tuple(kept))


def through(stages: Sequence[Stage], taken: "torch.Tensor", kept: Sequence[Span]) -> "torch.Tensor":
    """What the last stage keeps."""
    hidden = taken
    for stage, span in zip(stages, kept, strict=True):
        hidden = stage.run(hidden)[..., span.start : span.end]
    return hidden

"""Mel to samples: transformers' own BigVGAN, a piece at a time, each with all of the mel that its samples hear.

The rate rises from stage to stage, and a stage hands on only what is heard behind it. So what a piece needs around
itself costs little: it is wide where a frame is cheap.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from transformers import Qwen2_5OmniBigVGANConfig
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import (
    Qwen2_5OmniAntiAliasedActivation1d,
    Qwen2_5OmniToken2WavBigVGANModel,
)

from omni_runtime.families.codec_reach import Convolution, Span, Upsampling, needed
from omni_runtime.families.qwen2_5_omni.anti_aliasing import REACH, AntiAliasedSnake

EDGE_KERNEL = 7
ACTIVATION = Convolution(REACH, REACH)


@dataclass(frozen=True)
class Piece:
    """A span of a speech's mel, of shape (frames, bands), to make sound of."""

    mel: torch.Tensor
    span: Span


@dataclass(frozen=True)
class Stage:
    """`layers` are its own, of those side by side the widest; together they raise the rate to so many times."""

    rate: int
    layers: Sequence[Convolution | Upsampling]
    run: Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Route:
    """How many frames of mel the first stage takes, and what each hands on of that which it makes."""

    frames: int
    kept: tuple[Span, ...]


class Vocoder:
    def __init__(self, module: Qwen2_5OmniToken2WavBigVGANModel) -> None:
        self._module = module
        _replace_activations(module)
        edge = _centered(EDGE_KERNEL)
        self._stages = [
            Stage(1, [edge], self._first),
            *(Stage(*rise, partial(self._risen, place)) for place, rise in enumerate(rises(module.config))),
            Stage(1, [ACTIVATION, edge], self._last),
        ]

    def sound(self, pieces: Sequence[Piece]) -> list[torch.Tensor]:
        """Pieces of one route go through together."""
        spans = [self._spans(piece) for piece in pieces]
        routes = [self._route(of_piece) for of_piece in spans]
        made: dict[int, torch.Tensor] = {}
        for route in set(routes):
            rows = [row for row, other in enumerate(routes) if other == route]
            mel = torch.stack([pieces[row].mel[spans[row][0].start : spans[row][0].end].T for row in rows])
            made |= zip(rows, self._made(mel, route), strict=True)
        return [made[row].clone() for row in range(len(pieces))]

    def _spans(self, piece: Piece) -> list[Span]:
        """Of the mel and of what each stage makes, no more than is heard behind it."""
        rate = math.prod(stage.rate for stage in self._stages)
        spans, length = [Span(piece.span.start * rate, piece.span.end * rate)], len(piece.mel) * rate
        for stage in reversed(self._stages):
            heard, length = needed(stage.layers, spans[0]), length // stage.rate
            spans.insert(0, Span(max(0, heard.start), min(length, heard.end)))
        return spans

    def _route(self, spans: Sequence[Span]) -> Route:
        made = [span.start * stage.rate for stage, span in zip(self._stages, spans, strict=False)]
        kept = [Span(span.start - start, span.end - start) for start, span in zip(made, spans[1:], strict=True)]
        return Route(spans[0].end - spans[0].start, tuple(kept))

    def _made(self, mel: torch.Tensor, route: Route) -> torch.Tensor:
        hidden = mel
        for stage, kept in zip(self._stages, route.kept, strict=True):
            hidden = stage.run(hidden)[..., kept.start : kept.end]
        return hidden[:, 0].cpu()

    def _first(self, mel: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self._module.conv_pre(self._module.process_mel_spectrogram(mel))
        return hidden

    def _risen(self, place: int, hidden: torch.Tensor) -> torch.Tensor:
        """To the next rate, then through blocks side by side."""
        count = self._module.num_residual_blocks
        [rise] = self._module.ups[place]
        hidden = rise(hidden)
        blocks = self._module.resblocks[place * count : (place + 1) * count]
        return sum(block(hidden) for block in blocks) / count

    def _last(self, hidden: torch.Tensor) -> torch.Tensor:
        return self._module.conv_post(self._module.activation_post(hidden)).clamp(-1, 1)


def rises(config: Qwen2_5OmniBigVGANConfig) -> Iterator[tuple[int, list[Convolution | Upsampling]]]:
    """The stages that raise the rate, by how much, and their layers."""
    kernel, dilations = max(zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes, strict=True))
    for rate, up_kernel in zip(config.upsample_rates, config.upsample_kernel_sizes, strict=True):
        cut = (up_kernel - rate) // 2
        layers: list[Convolution | Upsampling] = [Upsampling(rate, up_kernel, cut, cut)]
        for dilation in dilations:
            layers += [ACTIVATION, _centered(kernel, dilation), ACTIVATION, _centered(kernel)]
        yield rate, layers


def _replace_activations(module: torch.nn.Module) -> None:
    for name, child in list(module.named_modules()):
        if isinstance(child, Qwen2_5OmniAntiAliasedActivation1d):
            module.set_submodule(name, AntiAliasedSnake(child))


def _centered(kernel: int, dilation: int = 1) -> Convolution:
    side = (kernel - 1) * dilation // 2
    return Convolution(side, side)

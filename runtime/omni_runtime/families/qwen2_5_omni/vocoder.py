"""Mel to samples: transformers' own BigVGAN, a piece at a time, each with all of the mel that its samples hear."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from transformers import Qwen2_5OmniBigVGANConfig
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import (
    Qwen2_5OmniAntiAliasedActivation1d,
    Qwen2_5OmniToken2WavBigVGANModel,
)

from omni_runtime.families.codec_reach import Convolution, Span, Upsampling
from omni_runtime.families.codec_stages import Route, Stage, route, through
from omni_runtime.families.qwen2_5_omni.anti_aliasing import REACH, AntiAliasedSnake

EDGE_KERNEL = 7
ACTIVATION = Convolution(REACH, REACH)


@dataclass(frozen=True)
class Piece:
    """A span of a speech's mel, of shape (frames, bands), to make sound of."""

    mel: torch.Tensor
    span: Span


class Vocoder:
    def __init__(self, module: Qwen2_5OmniToken2WavBigVGANModel) -> None:
        self._module = module
        _replace_activations(module)
        edge = _centered(EDGE_KERNEL)
        self._stages = [
            Stage([edge], self._first),
            *(Stage(layers, partial(self._risen, place)) for place, layers in enumerate(rises(module.config))),
            Stage([ACTIVATION, edge], self._last),
        ]
        self._samples_per_frame = math.prod(stage.rate for stage in self._stages)

    def sound(self, pieces: Sequence[Piece]) -> list[torch.Tensor]:
        """Pieces of one way go through together."""
        routes = [self._route(piece) for piece in pieces]
        made: dict[int, torch.Tensor] = {}
        for way in {one.way for one in routes}:
            rows = [row for row, one in enumerate(routes) if one.way == way]
            mel = torch.stack([_cut(pieces[row].mel, routes[row].taken).T for row in rows])
            made |= zip(rows, through(self._stages, mel, routes[rows[0]].kept)[:, 0].cpu(), strict=True)
        return [made[row].clone() for row in range(len(pieces))]

    def _route(self, piece: Piece) -> Route:
        start, end = piece.span.start * self._samples_per_frame, piece.span.end * self._samples_per_frame
        return route(self._stages, len(piece.mel), Span(start, end))

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


def rises(config: Qwen2_5OmniBigVGANConfig) -> Iterator[list[Convolution | Upsampling]]:
    """The layers of each stage that raises the rate."""
    kernel, dilations = max(zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes, strict=True))
    for rate, up_kernel in zip(config.upsample_rates, config.upsample_kernel_sizes, strict=True):
        cut = (up_kernel - rate) // 2
        layers: list[Convolution | Upsampling] = [Upsampling(rate, up_kernel, cut, cut)]
        for dilation in dilations:
            layers += [ACTIVATION, _centered(kernel, dilation), ACTIVATION, _centered(kernel)]
        yield layers


def _replace_activations(module: torch.nn.Module) -> None:
    for name, child in list(module.named_modules()):
        if isinstance(child, Qwen2_5OmniAntiAliasedActivation1d):
            module.set_submodule(name, AntiAliasedSnake(child))


def _cut(mel: torch.Tensor, span: Span) -> torch.Tensor:
    return mel[span.start : span.end]


def _centered(kernel: int, dilation: int = 1) -> Convolution:
    side = (kernel - 1) * dilation // 2
    return Convolution(side, side)

"""Mel to samples: transformers' own BigVGAN, a piece at a time, each with all of the mel that its samples hear."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import Qwen2_5OmniBigVGANConfig
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import Qwen2_5OmniToken2WavBigVGANModel

from omni_runtime.families.codec_reach import Convolution, Span, Upsampling, length, needed

EDGE_KERNEL = 7
ACTIVATION_REACH = 6
"""An activation runs at twice the rate, between two filters of twelve."""
FAR = 100_000


@dataclass(frozen=True)
class Piece:
    """A span of a speech's mel, of shape (frames, bands), to make sound of."""

    mel: torch.Tensor
    span: Span


class Vocoder:
    def __init__(self, module: Qwen2_5OmniToken2WavBigVGANModel) -> None:
        self._module = module
        layers = convolutions(module.config)
        self._samples_per_frame = length(layers, 1)
        self._reach = reach(layers, self._samples_per_frame)

    def sound(self, pieces: Sequence[Piece]) -> list[torch.Tensor]:
        """Pieces that need as much mel as one another go through together."""
        windows = [self._window(piece) for piece in pieces]
        made: dict[int, torch.Tensor] = {}
        for frames in {window.end - window.start for window in windows}:
            rows = [row for row, window in enumerate(windows) if window.end - window.start == frames]
            mel = torch.stack([pieces[row].mel[windows[row].start : windows[row].end].T for row in rows])
            made |= zip(rows, self._module(mel).reshape(len(rows), -1), strict=True)
        return [self._own(made[row], piece, windows[row]) for row, piece in enumerate(pieces)]

    def _window(self, piece: Piece) -> Span:
        start, end = piece.span.start - self._reach.start, piece.span.end + self._reach.end
        return Span(max(0, start), min(len(piece.mel), end))

    def _own(self, samples: torch.Tensor, piece: Piece, window: Span) -> torch.Tensor:
        before = (piece.span.start - window.start) * self._samples_per_frame
        return samples[before : before + (piece.span.end - piece.span.start) * self._samples_per_frame].clone()


def convolutions(config: Qwen2_5OmniBigVGANConfig) -> list[Convolution | Upsampling]:
    """The layers from mel to samples, of those side by side the widest."""
    edge, activation = _centered(EDGE_KERNEL), Convolution(ACTIVATION_REACH, ACTIVATION_REACH)
    layers: list[Convolution | Upsampling] = [edge]
    kernel, dilations = max(zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes, strict=True))
    for rate, up_kernel in zip(config.upsample_rates, config.upsample_kernel_sizes, strict=True):
        cut = (up_kernel - rate) // 2
        layers.append(Upsampling(rate, up_kernel, cut, cut))
        for dilation in dilations:
            layers += [activation, _centered(kernel, dilation), activation, _centered(kernel)]
    return [*layers, activation, edge]


def reach(layers: Sequence[Convolution | Upsampling], samples_per_frame: int) -> Span:
    """Frames before and frames after a span that its samples hear."""
    one = needed(layers, Span(FAR * samples_per_frame, (FAR + 1) * samples_per_frame))
    return Span(FAR - one.start, one.end - FAR - 1)


def _centered(kernel: int, dilation: int = 1) -> Convolution:
    side = (kernel - 1) * dilation // 2
    return Convolution(side, side)

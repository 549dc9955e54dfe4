"""Codes to mel: transformers' own diffusion transformer, its steps taken one by one and for several speeches at once.

Each speech has its own length, time and guidance. The sums are those of transformers' fourth-order Runge-Kutta solver.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import Qwen2_5OmniToken2WavDiTModel

from omni_runtime.families.qwen2_5_omni.request import SpeechSettings
from omni_runtime.families.qwen2_5_omni.voices import Voice

SWAY = -1.0
"""Bends the times towards the beginning, as the published model's default does."""
OUT_OF_SIGHT = 1_000_000
"""Blocks between a frame and the padding of its own row, which no layer looks over."""
Velocity: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Speech:
    """One speech on its way from noise to mel."""

    mel: torch.Tensor
    """As far as it is, of shape (frames, bands)."""
    conditions: torch.Tensor
    """What stays the same over all steps, of shape (2, frames, features): once as wanted, once as if nothing was."""
    times: torch.Tensor
    guidance_scale: float
    step: int = 0

    @property
    def is_done(self) -> bool:
        return self.step == len(self.times) - 1


class MelTransformer:
    def __init__(self, module: Qwen2_5OmniToken2WavDiTModel) -> None:
        self._module = module

    def begin(self, codes: torch.Tensor, voice: Voice, settings: SpeechSettings) -> Speech:
        module, device = self._module, self._module.device
        codes = codes[None].to(device)
        embedded = torch.cat((module.text_embed(codes), module.text_embed(codes, drop_code=True)))
        frames = embedded.shape[1]
        references = torch.cat((voice.reference, torch.zeros_like(voice.reference)))
        speakers = torch.cat((voice.conditioning, torch.zeros_like(voice.conditioning)))
        heard = module.input_embed.spk_encoder(references)
        generator = torch.Generator("cpu").manual_seed(settings.seed)
        return Speech(
            mel=torch.randn((1, frames, module.mel_dim), generator=generator)[0].to(device),
            conditions=torch.cat((_repeated(heard, frames), embedded, _repeated(speakers, frames)), dim=-1),
            times=_times(settings.steps).to(device),
            guidance_scale=settings.guidance_scale,
        )

    def step(self, speeches: Sequence[Speech]) -> list[Speech]:
        """Each of them a step further."""
        lengths = [len(speech.mel) for speech in speeches]
        begins = torch.stack([speech.times[speech.step] for speech in speeches])
        ends = torch.stack([speech.times[speech.step + 1] for speech in speeches])
        mel = pad_sequence([speech.mel for speech in speeches], batch_first=True)
        mel = mel + _runge_kutta(self._velocity(speeches), begins, ends, mel)
        return [
            replace(speech, mel=row[:frames], step=speech.step + 1)
            for speech, row, frames in zip(speeches, mel, lengths, strict=True)
        ]

    def _velocity(self, speeches: Sequence[Speech]) -> Velocity:
        module = self._module
        wanted, nothing = (
            pad_sequence([speech.conditions[branch] for speech in speeches], batch_first=True) for branch in (0, 1)
        )
        conditions = torch.cat((wanted, nothing))
        guidance = torch.tensor([[[speech.guidance_scale]] for speech in speeches], device=module.device)
        lengths = torch.tensor([len(speech.mel) for speech in speeches]).repeat(2)
        distances = block_distances(lengths, module.block_size).to(module.device)
        positions = torch.arange(conditions.shape[1], device=module.device).repeat(len(lengths), 1)

        def velocity(times: torch.Tensor, mel: torch.Tensor) -> torch.Tensor:
            time = module.time_embed(times.repeat(2))
            hidden = module.input_embed.proj(torch.cat((mel.repeat(2, 1, 1), conditions), dim=-1))
            rotary = module.rotary_embed(hidden, positions)
            for block in module.transformer_blocks:
                hidden = block(hidden, time, position_embeddings=rotary, block_diff=distances)
            guided, plain = module.proj_out(module.norm_out(hidden, time)).chunk(2)
            return guided + (guided - plain) * guidance

        return velocity


def block_distances(lengths: torch.Tensor, block_size: int) -> torch.Tensor:
    """Blocks from each frame to each other, of shape (rows, 1, frames, frames); padding is seen by padding alone."""
    frames = torch.arange(int(lengths.max()))
    blocks = frames // block_size
    is_padding = frames >= lengths[:, None]
    across = is_padding[:, None, :] & ~is_padding[:, :, None]
    return (blocks - blocks[:, None]).expand(len(lengths), -1, -1).masked_fill(across, OUT_OF_SIGHT)[:, None]


def _runge_kutta(velocity: Velocity, begins: torch.Tensor, ends: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """What the value changes by: the 3/8 rule."""
    third, two_thirds = 1 / 3, 2 / 3
    spans = ends - begins
    span = spans[:, None, None]
    k1 = velocity(begins, value)
    k2 = velocity(begins + spans * third, value + span * k1 * third)
    k3 = velocity(begins + spans * two_thirds, value + span * (k2 - k1 * third))
    k4 = velocity(ends, value + span * (k1 - k2 + k3))
    return (k1 + 3 * (k2 + k3) + k4) * span / 8


def _times(steps: int) -> torch.Tensor:
    times = torch.linspace(0, 1, steps)
    return times + SWAY * (torch.cos(torch.pi / 2 * times) - 1 + times)


def _repeated(rows: torch.Tensor, frames: int) -> torch.Tensor:
    return rows[:, None].repeat(1, frames, 1)

"""Codes to mel: transformers' own diffusion transformer, its steps taken one by one and for several speeches at once.

Each speech has its own length, time and guidance. The sums are those of transformers' fourth-order Runge-Kutta solver.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch.nn.functional import linear, pad
from torch.nn.utils.rnn import pad_sequence
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import DiTDecoderLayer, Qwen2_5OmniToken2WavDiTModel

from omni_runtime.families.qwen2_5_omni.near_attention import Rotary, Sight, View, attend, view_of
from omni_runtime.families.qwen2_5_omni.request import SpeechSettings
from omni_runtime.families.qwen2_5_omni.voices import Voice

SWAY = -1.0
"""Bends the times towards the beginning, as the published model's default does."""
Velocity: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Speech:
    """One speech on its way from noise to mel."""

    mel: torch.Tensor
    """As far as it is, of shape (frames, bands)."""
    conditions: torch.Tensor
    """What codes and voice add to each frame, of shape (2, frames, width): as wanted, and as if nothing was."""
    times: torch.Tensor
    guidance_scale: float
    step: int = 0

    @property
    def is_done(self) -> bool:
        return self.step == len(self.times) - 1


class MelTransformer:
    def __init__(self, module: Qwen2_5OmniToken2WavDiTModel) -> None:
        self._module = module
        self._layers = [(layer, _sight(layer)) for layer in module.transformer_blocks]

    def hear(self, voice: Voice) -> torch.Tensor:
        """What the voice adds to every frame, of shape (2, width): as wanted, and as if nothing was."""
        embed, (_, of_sound, _, of_speaker) = self._module.input_embed, self._input_weights
        sounds = embed.spk_encoder(_and_nothing(voice.reference))
        return linear(sounds, of_sound, embed.proj.bias) + linear(_and_nothing(voice.conditioning), of_speaker)

    def begin(self, codes: torch.Tensor, heard: torch.Tensor, settings: SpeechSettings) -> Speech:
        """`heard` is what the voice adds."""
        module, device = self._module, self._module.device
        codes, (_, _, of_codes, _) = codes[None].to(device), self._input_weights
        embedded = torch.cat((module.text_embed(codes), module.text_embed(codes, drop_code=True)))
        generator = torch.Generator("cpu").manual_seed(settings.seed)
        return Speech(
            mel=torch.randn((1, embedded.shape[1], module.mel_dim), generator=generator)[0].to(device),
            conditions=linear(embedded, of_codes) + heard[:, None],
            times=_times(settings.steps).to(device),
            guidance_scale=settings.guidance_scale,
        )

    def step(self, speeches: Sequence[Speech]) -> list[Speech]:
        """Each of them a step further."""
        lengths = [len(speech.mel) for speech in speeches]
        begins = torch.stack([speech.times[speech.step] for speech in speeches])
        ends = torch.stack([speech.times[speech.step + 1] for speech in speeches])
        mel = self._in_blocks([speech.mel for speech in speeches])
        mel = mel + _runge_kutta(self._velocity(speeches), begins, ends, mel)
        return [
            replace(speech, mel=row[:frames], step=speech.step + 1)
            for speech, row, frames in zip(speeches, mel, lengths, strict=True)
        ]

    def _velocity(self, speeches: Sequence[Speech]) -> Velocity:
        module, of_mel = self._module, self._input_weights[0]
        conditions = torch.cat([self._in_blocks([one.conditions[branch] for one in speeches]) for branch in (0, 1)])
        guidance = torch.tensor([[[speech.guidance_scale]] for speech in speeches], device=module.device)
        lengths = torch.tensor([len(speech.mel) for speech in speeches]).repeat(2)
        frames = torch.arange(conditions.shape[1])
        is_real = (frames < lengths[:, None]).unflatten(1, (-1, module.block_size)).to(module.device)
        views = {sight: view_of(sight, is_real) for sight in {sight for _, sight in self._layers}}
        rotary = module.rotary_embed(conditions, frames[None].to(module.device))

        def velocity(times: torch.Tensor, mel: torch.Tensor) -> torch.Tensor:
            time = module.time_embed(times.repeat(2))
            hidden = linear(mel, of_mel).repeat(2, 1, 1) + conditions
            for layer, sight in self._layers:
                hidden = _through(layer, hidden, time, rotary, views[sight])
            guided, plain = module.norm_out(hidden, time).chunk(2)
            made: torch.Tensor = module.proj_out(guided + (guided - plain) * guidance)
            return made

        return velocity

    def _in_blocks(self, rows: Sequence[torch.Tensor]) -> torch.Tensor:
        """A row each, padded to the whole blocks that hold the longest."""
        size = self._module.block_size
        joined = pad_sequence(list(rows), batch_first=True)
        return pad(joined, (0, 0, 0, -joined.shape[1] % size))

    @property
    def _input_weights(self) -> tuple[torch.Tensor, ...]:
        """Those of the mel, of the voice's sound, of the codes and of the speaker: they are added to one another."""
        config, weights = self._module.config, self._module.input_embed.proj.weight
        return tuple(weights.split((config.mel_dim, config.enc_dim, config.emb_dim, config.enc_emb_dim), dim=1))


def _sight(layer: DiTDecoderLayer) -> Sight:
    return Sight(layer.look_backward_block, layer.look_ahead_block)


def _through(
    layer: DiTDecoderLayer, hidden: torch.Tensor, time: torch.Tensor, rotary: Rotary, view: View
) -> torch.Tensor:
    """As the layer itself does it, but for the attention."""
    norm, gate, shift, scale, outer_gate = layer.attn_norm(hidden, emb=time)
    hidden = hidden + gate[:, None] * attend(layer.attn, norm, rotary, view)
    norm = layer.ff_norm(hidden) * (1 + scale[:, None]) + shift[:, None]
    return hidden + outer_gate[:, None] * layer.ff(norm)


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


def _and_nothing(given: torch.Tensor) -> torch.Tensor:
    return torch.cat((given, torch.zeros_like(given)))

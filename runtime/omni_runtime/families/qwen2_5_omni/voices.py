"""The speakers of a checkpoint: what the talker begins with, and what token2wav makes its sound like."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import torch
from transformers import Qwen2_5OmniDiTConfig

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.stepping.loading import LoadPlan, ModelLoadError

FILE = "spk_dict.pt"
DUMMY_VOICES = ("Chelsie", "Ethan")
DUMMY_FRAMES = 300
V = TypeVar("V")


@dataclass(frozen=True)
class Voice:
    """`token_id` is the thinker's token that the talker's speech begins with."""

    token_id: int
    conditioning: torch.Tensor
    """Of shape (1, features)."""
    reference: torch.Tensor
    """Mel of something the speaker has said, of shape (1, frames, bands)."""


def read_voices(plan: LoadPlan, config: Qwen2_5OmniDiTConfig) -> dict[str, Voice]:
    """By name, in the checkpoint's order; silent ones if the weights are made up, too."""
    if plan.is_dummy:
        nobody = Voice(0, torch.zeros(1, config.enc_emb_dim), torch.zeros(1, DUMMY_FRAMES, config.mel_dim))
        return {name: _on(plan.device, nobody) for name in DUMMY_VOICES}
    path = plan.folder / FILE
    if not path.is_file():
        raise ModelLoadError(f"{plan.folder} has no {FILE}, and token2wav cannot speak without a voice")
    entries = torch.load(path, weights_only=True, map_location="cpu")
    voices = {
        name: Voice(int(entry["bos_token"]), entry["cond"].float(), entry["ref_mel"].float())
        for name, entry in entries.items()
    }
    return {name: _on(plan.device, voice) for name, voice in voices.items()}


def voice_of(voices: Mapping[str, V], name: str | None) -> V:
    """What is known of the voice that a request asks for, however it writes the name; OmniError if there is none."""
    if name is None:
        return next(iter(voices.values()))
    for known, voice in voices.items():
        if known.casefold() == name.casefold():
            return voice
    raise OmniError(
        ErrorCode.INVALID_REQUEST, f'there is no voice "{name}"; the voices are {", ".join(sorted(voices))}', "voice"
    )


def _on(device: torch.device, voice: Voice) -> Voice:
    return Voice(voice.token_id, voice.conditioning.to(device), voice.reference.to(device))

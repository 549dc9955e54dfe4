"""Takes a voice from somebody's speech: its sound as a row for the talker and, with its text, its codes."""

from dataclasses import replace
from typing import Any, TypeAlias

import numpy
import torch
from transformers import MimiConfig, MimiModel
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import ECAPA_TimeDelayNet
from transformers.models.qwen3.modeling_qwen3 import Qwen3PreTrainedModel

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.families.checkpoint_part import load_module, read_config
from omni_runtime.families.qwen3_tts.code2wav import FOLDER
from omni_runtime.families.qwen3_tts.configuration import CodecConfig, Qwen3TTSConfig, SpeakerEncoderConfig
from omni_runtime.families.qwen3_tts.order import Reference
from omni_runtime.families.qwen3_tts.prompt import Timbre
from omni_runtime.families.qwen3_tts.reference_sound import mel_of
from omni_runtime.stepping.loading import LoadPlan
from omni_runtime.writing.resample import resampled

Samples: TypeAlias = "numpy.ndarray[Any, Any]"
SHORTEST_S, LONGEST_S = 0.1, 60.0
"""Of a reference: the encoders see several frames at once, and the step thread serves others, too."""


class SpeakerEncoder(Qwen3PreTrainedModel):
    """Qwen2.5-Omni's, with the weights' names of the checkpoints."""

    config: SpeakerEncoderConfig

    def __init__(self, config: SpeakerEncoderConfig) -> None:
        super().__init__(config)
        network = ECAPA_TimeDelayNet(config)
        self.blocks, self.mfa, self.asp, self.fc = network.blocks, network.mfa, network.asp, network.fc
        self.post_init()

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        row: torch.Tensor = ECAPA_TimeDelayNet.forward(self, mel)
        return row


class CodecEncoder(MimiModel):
    """The half of Mimi that makes codes."""

    def __init__(self, config: MimiConfig) -> None:
        super().__init__(config)
        del self.upsample, self.decoder_transformer, self.decoder


class Cloner:
    def __init__(self, speaker: SpeakerEncoder, codec: CodecEncoder, config: CodecConfig) -> None:
        self._speaker = speaker
        self._codec = codec
        self._config = config

    @property
    def modules(self) -> list[torch.nn.Module]:
        return [self._speaker, self._codec]

    def timbre(self, reference: Reference) -> Timbre:
        """On the step thread; OmniError if the reference is too short or too long."""
        sound = numpy.frombuffer(reference.sound.data, dtype=numpy.float32)
        seconds = len(sound) / reference.sample_rate
        if not SHORTEST_S <= seconds <= LONGEST_S:
            text = f"ref_audio: it lasts {seconds:.3g} s; it must last from {SHORTEST_S:g} to {LONGEST_S:g} s"
            raise OmniError(ErrorCode.INVALID_REQUEST, text, "ref_audio")
        return Timbre(self._row(reference, sound), self._codes(reference, sound) if reference.text else None)

    def _row(self, reference: Reference, sound: Samples) -> torch.Tensor:
        rate = self._speaker.config.sample_rate
        heard = torch.tensor(resampled(sound, reference.sample_rate, rate), device=self._speaker.device)
        row: torch.Tensor = self._speaker(mel_of(heard, rate).to(self._speaker.dtype))[0]
        return row

    def _codes(self, reference: Reference, sound: Samples) -> torch.Tensor:
        """Of shape (groups, frames)."""
        rate = self._config.input_sample_rate
        heard = torch.tensor(resampled(sound, reference.sample_rate, rate), device=self._codec.device)
        frames = -(-len(heard) // self._config.encode_downsample_rate)
        codes: torch.Tensor = self._codec.encode(heard[None, None].to(self._codec.dtype), return_dict=True).audio_codes
        return codes[0, : self._config.encoder_valid_num_quantizers, :frames]


def load_cloner(plan: LoadPlan, config: Qwen3TTSConfig) -> Cloner:
    own = replace(plan, folder=plan.folder / FOLDER)
    codec = read_config(CodecConfig, own)
    encoder = MimiConfig(**(codec.encoder_config or {}))
    # The transformers that the package pins lets each frame of the encoder see all before it, whatever its window.
    encoder.sliding_window = encoder.max_position_embeddings
    return Cloner(
        load_module(SpeakerEncoder, config.speaker_encoder, "speaker_encoder", plan),
        load_module(CodecEncoder, encoder, "encoder", own),
        codec,
    )

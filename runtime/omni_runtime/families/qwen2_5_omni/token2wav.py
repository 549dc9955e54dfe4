"""Qwen2.5-Omni's token2wav: all codes of a speech to mel by a diffusion transformer, then mel to samples by a BigVGAN.

The transformer sees every frame at each of its steps, what comes after included, so it begins once the talker has
ended; a step of the engine is one of its own, with several requests' speeches in it. What the vocoder makes leaves in
pieces.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from transformers import Qwen2_5OmniConfig, Qwen2_5OmniDiTConfig, Qwen2_5OmniToken2WavModel

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Value
from omni_runtime.families.checkpoint_part import load_module, read_config
from omni_runtime.families.codec_reach import Span
from omni_runtime.families.qwen2_5_omni.diffusion_transformer import MelTransformer, Speech
from omni_runtime.families.qwen2_5_omni.mel import cap_and_align_mel_length, resolve_max_mel_frames
from omni_runtime.families.qwen2_5_omni.request import SpeechSettings, parse_speech_settings
from omni_runtime.families.qwen2_5_omni.vocoder import Piece, Vocoder
from omni_runtime.families.qwen2_5_omni.voices import Voice, read_voices, voice_of
from omni_runtime.generation.decoder import Turn
from omni_runtime.library_logs import tame_transformers
from omni_runtime.stepping import weights
from omni_runtime.stepping.loading import LoadPlan, ModelLoadError
from omni_runtime.stepping.resident import Loading

SAMPLE_RATE = 24_000
FIRST_PIECE, NEXT_PIECES = 100, 300
"""Frames of mel: a second of sound at once, then three; each border between two costs some work twice."""


@dataclass
class Token2WavStream:
    """`speech` is there once all codes are; `mel`, and how much of it has become sound, once its steps are done."""

    settings: SpeechSettings
    heard: torch.Tensor
    """What its voice adds to the mel's making."""
    speech: Speech | None = None
    mel: torch.Tensor | None = None
    vocoded: int = 0

    @property
    def batch_key(self) -> str:
        return "mel" if self.mel is None else "sound"

    def has_work(self, waiting: int, is_ended: bool) -> bool:
        is_sounding = self.mel is not None and self.vocoded < len(self.mel)
        return is_ended and (waiting > 0 or self.speech is not None or is_sounding)


class Token2Wav:
    sample_rate = SAMPLE_RATE
    frames_per_step = None
    code_groups = 1

    def __init__(self, module: Qwen2_5OmniToken2WavModel, voices: Mapping[str, Voice]) -> None:
        self._module = module
        self._transformer = MelTransformer(module.code2wav_dit_model)
        self._heard = {name: self._transformer.hear(voice) for name, voice in voices.items()}
        self._vocoder = Vocoder(module.code2wav_bigvgan_model)
        self._config: Qwen2_5OmniDiTConfig = module.config.dit_config
        self.codebook_size: int = self._config.num_embeds

    @property
    def modules(self) -> list[torch.nn.Module]:
        return [self._module]

    def test_turns(self) -> Iterator[object]:
        stream = self.begin({"steps": 2})
        codes: torch.Tensor | None = torch.zeros((1, 2), dtype=torch.long)
        while stream.has_work(0 if codes is None else 2, True):
            yield self.step([Turn(stream, codes)])
            codes = None

    def begin(self, parameters: Mapping[str, Value]) -> Token2WavStream:
        settings = parse_speech_settings(parameters)
        return Token2WavStream(settings, voice_of(self._heard, settings.voice))

    def step(self, turns: Sequence[Turn]) -> list[torch.Tensor | None]:
        streams: list[Token2WavStream] = [turn.stream for turn in turns]
        if streams[0].mel is not None:
            return [*self._sound(streams)]
        speeches = [
            stream.speech or self._begun(stream, turn.codes) for stream, turn in zip(streams, turns, strict=True)
        ]
        for stream, speech in zip(streams, self._transformer.step(speeches), strict=True):
            stream.speech, stream.mel = (None, speech.mel) if speech.is_done else (speech, None)
        return [None] * len(streams)

    def _begun(self, stream: Token2WavStream, codes: torch.Tensor) -> Speech:
        limit, whole = self._config.max_position_embeddings, codes.shape[1] * self._config.repeats
        max_frames = resolve_max_mel_frames(stream.settings.max_mel_frames, whole)
        used, frames = cap_and_align_mel_length(codes.shape[1], self._config.repeats, max_frames)
        if frames > limit:
            text = f"the speech has {frames} frames of mel, and the model makes {limit} at most; ask for a shorter one"
            raise OmniError(ErrorCode.INVALID_REQUEST, text, "max_mel_frames")
        return self._transformer.begin(codes[0, :used], stream.heard, stream.settings)

    def _sound(self, streams: Sequence[Token2WavStream]) -> list[torch.Tensor]:
        pieces = [_next_piece(stream) for stream in streams]
        sound = self._vocoder.sound(pieces)
        for stream, piece in zip(streams, pieces, strict=True):
            stream.vocoded = piece.span.end
        return sound


def _next_piece(stream: Token2WavStream) -> Piece:
    assert stream.mel is not None
    frames = NEXT_PIECES if stream.vocoded else FIRST_PIECE
    return Piece(stream.mel, Span(stream.vocoded, min(len(stream.mel), stream.vocoded + frames)))


def load(plan: LoadPlan) -> Loading[Token2Wav]:
    tame_transformers()
    if plan.dtype not in (None, torch.float32):
        raise ModelLoadError(
            f"token2wav computes in float32 only, and the stage asks for {plan.dtype}; set dtype: auto"
        )
    yield "loading token2wav 1/1"
    config = read_config(Qwen2_5OmniConfig, plan).token2wav_config
    module = load_module(Qwen2_5OmniToken2WavModel, config, "token2wav", replace(plan, dtype=torch.float32))
    voices = read_voices(plan, config.dit_config)
    yield f"loaded {weights.size_bytes([module]) / 2**30:.3g} GiB and the voices {', '.join(voices)}"
    return Token2Wav(module, voices)

"""Qwen3-TTS's 12 Hz codec, in steps whose sum is exactly one decode.

The qwen-tts package decodes 300 frames at a time, each time with 25 frames before them, which is near to one decode
but not equal to it: a longer speech differs from the package's behind its first 24 seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from omni_contract.wire.payload import Value
from omni_runtime.families.checkpoint_part import load_module, read_config
from omni_runtime.families.qwen3_tts.codec_module import FIRST_KERNEL, CodecModule
from omni_runtime.families.qwen3_tts.configuration import CodecConfig
from omni_runtime.families.windowed_codec import CodecStream, Widths, WindowedCodec, convolutions
from omni_runtime.library_logs import tame_transformers
from omni_runtime.stepping import weights
from omni_runtime.stepping.loading import LoadPlan
from omni_runtime.stepping.resident import Loading

FOLDER = "speech_tokenizer"
"""Of the checkpoint, a checkpoint of its own."""


@dataclass
class TtsStream(CodecStream):
    before: torch.Tensor = field(kw_only=True)
    """The quantized frames that the first convolution still sees, of shape (width, 2); zeros before the beginning."""


class Code2Wav(WindowedCodec):
    def __init__(self, module: CodecModule, sample_rate: int) -> None:
        config = module.config
        widths = Widths(config.head_dim, config.latent_dim)
        super().__init__(module, config, widths, convolutions(config, cuts_left=False))
        self.sample_rate = sample_rate

    def begin(self, parameters: Mapping[str, Value]) -> TtsStream:
        begun = super().begin(parameters)
        return TtsStream(begun.window, begun.states, before=self._nothing(self._width, FIRST_KERNEL - 1))

    def _embedded(self, streams: Sequence[TtsStream], codes: torch.Tensor) -> torch.Tensor:
        before = torch.stack([stream.before for stream in streams])
        seen = torch.cat((before, self._module.quantizer(codes)), dim=2)
        rows: torch.Tensor = self._module.pre_conv.conv(seen).transpose(1, 2)
        return rows

    def _remember(self, stream: TtsStream, codes: torch.Tensor) -> None:
        last = self._module.quantizer(codes[None, :, 1 - FIRST_KERNEL :])[0]
        stream.before = torch.cat((stream.before, last), dim=1)[:, 1 - FIRST_KERNEL :]

    @property
    def _width(self) -> int:
        width: int = self._module.config.codebook_dim
        return width


def load(plan: LoadPlan) -> Loading[Code2Wav]:
    tame_transformers()
    yield "loading code2wav 1/1"
    own = replace(plan, folder=plan.folder / FOLDER)
    config = read_config(CodecConfig, own)
    module = load_module(CodecModule, config.decoder, "decoder", own)
    yield f"loaded {weights.size_bytes([module]) / 2**30:.3g} GiB"
    return Code2Wav(module, config.output_sample_rate)

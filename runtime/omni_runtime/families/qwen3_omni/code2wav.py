"""Qwen3-Omni's code2wav on transformers' own layers, in steps whose sum is exactly one decode."""

from collections.abc import Sequence

import torch
from transformers import Qwen3OmniMoeConfig
from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import Qwen3OmniMoeCode2Wav

from omni_runtime.families.checkpoint_part import load_module, read_config
from omni_runtime.families.windowed_codec import CodecStream, Widths, WindowedCodec, convolutions
from omni_runtime.library_logs import tame_transformers
from omni_runtime.stepping import weights
from omni_runtime.stepping.loading import LoadPlan
from omni_runtime.stepping.resident import Loading


class Code2Wav(WindowedCodec):
    def __init__(self, module: Qwen3OmniMoeCode2Wav) -> None:
        config = module.config
        widths = Widths(config.hidden_size // config.num_attention_heads, config.hidden_size)
        super().__init__(module, config, widths, convolutions(config, cuts_left=True))

    def _embedded(self, streams: Sequence[CodecStream], codes: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self._module.code_embedding(codes + self._module.code_offset).mean(1)
        return rows


def load(plan: LoadPlan) -> Loading[Code2Wav]:
    tame_transformers()
    yield "loading code2wav 1/1"
    config = read_config(Qwen3OmniMoeConfig, plan).code2wav_config
    module = load_module(Qwen3OmniMoeCode2Wav, config, "code2wav", plan)
    yield f"loaded {weights.size_bytes([module]) / 2**30:.3g} GiB"
    return Code2Wav(module)

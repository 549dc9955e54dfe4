"""Qwen3-TTS's codec as a torch module: Qwen3-Omni's layers, with the weights' names of the checkpoints.

Codes are looked up in codebooks that add up, the first by itself and the rest together, before a transformer and
convolutions make sound of them.
"""

from typing import Any

import torch
from torch import nn
from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import (
    Qwen3OmniMoeCausalConvNet,
    Qwen3OmniMoeCausalTransConvNet,
    Qwen3OmniMoeCode2WavDecoderBlock,
    Qwen3OmniMoeCode2WavTransformerModel,
    Qwen3OmniMoeConvNeXtBlock,
    Qwen3OmniMoePreTrainedModel,
    Qwen3OmniMoeSnakeBeta,
)

from omni_runtime.families.qwen3_tts.configuration import CodecDecoderConfig

FIRST_KERNEL = 3
KERNEL = 7
LEAST_USAGE = 1e-5


class Codebook(nn.Module):
    """Entries as a training sums them up: the sum of what an entry stood for, and how often it did."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.cluster_usage = nn.Parameter(torch.ones(size))
        self.embedding_sum = nn.Parameter(torch.zeros(size, width))

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        usage = self.cluster_usage.clamp(min=LEAST_USAGE)
        return nn.functional.embedding(codes, self.embedding_sum) / usage[codes][..., None]


class Quantizer(nn.Module):
    def __init__(self, config: CodecDecoderConfig) -> None:
        super().__init__()
        self._codebook = Codebook(config.codebook_size, config.codebook_dim // 2)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self._codebook(codes)
        return rows


class QuantizerStack(nn.Module):
    """Codebooks whose entries add up. `input_proj` is in the checkpoints for the encoder alone."""

    def __init__(self, config: CodecDecoderConfig, count: int) -> None:
        super().__init__()
        width = config.codebook_dim // 2
        self.input_proj = nn.Conv1d(config.codebook_dim, width, 1, bias=False)
        self.output_proj = nn.Conv1d(width, config.codebook_dim, 1, bias=False)
        self.vq = nn.ModuleDict({"layers": nn.ModuleList([Quantizer(config) for _ in range(count)])})

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """(streams, width, frames) of (streams, groups, frames)."""
        layers = self.vq["layers"]
        assert isinstance(layers, nn.ModuleList)
        rows = torch.stack([layer(codes[:, group]) for group, layer in enumerate(layers)]).sum(0)
        quantized: torch.Tensor = self.output_proj(rows.transpose(1, 2))
        return quantized


class SplitQuantizer(nn.Module):
    def __init__(self, config: CodecDecoderConfig) -> None:
        super().__init__()
        self.rvq_first = QuantizerStack(config, 1)
        self.rvq_rest = QuantizerStack(config, config.num_quantizers - 1)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        quantized: torch.Tensor = self.rvq_first(codes[:, :1]) + self.rvq_rest(codes[:, 1:])
        return quantized


class CodecTransformer(Qwen3OmniMoeCode2WavTransformerModel):
    """Qwen3-Omni's, between two projections."""

    def __init__(self, config: CodecDecoderConfig) -> None:
        super().__init__(config)
        self.input_proj = nn.Linear(config.latent_dim, config.hidden_size)
        self.output_proj = nn.Linear(config.hidden_size, config.latent_dim)

    def forward(self, inputs_embeds: torch.Tensor, **settings: Any) -> Any:
        made = super().forward(inputs_embeds=self.input_proj(inputs_embeds), **settings)
        made.last_hidden_state = self.output_proj(made.last_hidden_state)
        return made


class CodecModule(Qwen3OmniMoePreTrainedModel):
    config: CodecDecoderConfig

    def __init__(self, config: CodecDecoderConfig) -> None:
        super().__init__(config)
        self.quantizer = SplitQuantizer(config)
        self.pre_conv = Qwen3OmniMoeCausalConvNet(config.codebook_dim, config.latent_dim, FIRST_KERNEL)
        self.pre_transformer = CodecTransformer._from_config(config)
        self.upsample = nn.ModuleList([_upsampling(config.latent_dim, ratio) for ratio in config.upsampling_ratios])
        rates = config.upsample_rates
        last = config.decoder_dim // 2 ** len(rates)
        self.decoder = nn.ModuleList(
            [
                Qwen3OmniMoeCausalConvNet(config.latent_dim, config.decoder_dim, KERNEL),
                *(Qwen3OmniMoeCode2WavDecoderBlock(config, position) for position in range(len(rates))),
                Qwen3OmniMoeSnakeBeta(last),
                Qwen3OmniMoeCausalConvNet(last, 1, KERNEL),
            ]
        )
        for module in self.modules():
            if isinstance(module, Qwen3OmniMoeCausalTransConvNet):
                # Qwen3-Omni's cuts both ends of what it makes; this one is causal, and keeps the beginning.
                module.left_pad = 0
        self.post_init()


def _upsampling(width: int, ratio: int) -> nn.ModuleList:
    return nn.ModuleList([Qwen3OmniMoeCausalTransConvNet(width, width, ratio, ratio), Qwen3OmniMoeConvNeXtBlock(width)])

"""Qwen3-Omni's talker as a vLLM model: a decoder of experts over codes, and the predictor of each frame's other codes.

It reads its part of the family's whole checkpoint. vLLM imports it in its own processes.
"""

from typing import Any, ClassVar

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.models.qwen3_moe import Qwen3MoeModel
from vllm.model_executor.models.utils import maybe_prefix

from omni_runtime.families.code_predictor import CodePredictor, Draws
from omni_runtime.families.protocol import RowKind
from omni_runtime.families.qwen3_omni.talker_input import SUPPRESSED
from omni_runtime.families.vllm_talker import TalkerOnVllm


class Talker(TalkerOnVllm):
    renamed: ClassVar = {"codec_head.": "lm_head.", "model.codec_embedding.": "model.embed_tokens."}

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        self.model = Qwen3MoeModel(vllm_config=vllm_config, prefix=maybe_prefix(prefix, "model"))
        self.text_projection = Projection(config)
        self.hidden_projection = Projection(config)
        self.code_predictor = CodePredictor(config.code_predictor_config)
        self.lm_head = ParallelLMHead(config.vocab_size, config.hidden_size, prefix=maybe_prefix(prefix, "lm_head"))
        self.logits_processor = LogitsProcessor(config.vocab_size)
        self.make_empty_intermediate_tensors = self.model.make_empty_intermediate_tensors
        self._end = config.codec_eos_token_id

    def embed_input_ids(self, input_ids: torch.Tensor) -> torch.Tensor:
        embedded: torch.Tensor = self.model.embed_input_ids(input_ids)
        return embedded

    def input_rows(self, rows: torch.Tensor, kind: RowKind) -> torch.Tensor:
        projection = self.hidden_projection if kind is RowKind.MEDIUM else self.text_projection
        projected: torch.Tensor = projection(rows.to(projection.linear_fc1.weight.dtype))
        return projected

    def further_codes(
        self, states: torch.Tensor, code_rows: torch.Tensor, draws: Draws
    ) -> tuple[torch.Tensor, torch.Tensor]:
        made: tuple[torch.Tensor, torch.Tensor] = self.code_predictor(states, code_rows, draws)
        return made

    def rows_of(self, further_codes: torch.Tensor) -> torch.Tensor:
        summed: torch.Tensor = self.code_predictor.rows_of(further_codes)
        return summed

    def compile_frames(self) -> None:
        self.code_predictor.compile_between()

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Behind the codes, the code that ends the speech alone can come."""
        logits: torch.Tensor = self.logits_processor(self.lm_head, hidden_states)
        end = logits[:, self._end].clone()
        logits[:, -SUPPRESSED:] = -torch.inf
        logits[:, self._end] = end
        return logits


class Projection(nn.Module):  # type: ignore[misc]
    """From the thinker's width to the talker's."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.linear_fc1 = nn.Linear(config.thinker_hidden_size, config.intermediate_size)
        self.linear_fc2 = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        projected: torch.Tensor = self.linear_fc2(nn.functional.silu(self.linear_fc1(rows)))
        return projected

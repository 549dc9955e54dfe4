"""Qwen2.5-Omni's talker as a vLLM model: a Qwen2 decoder over codes, whose input is as wide as the thinker.

It reads its part of the family's whole checkpoint. vLLM imports it in its own processes.
"""

from typing import ClassVar

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead, VocabParallelEmbedding
from vllm.model_executor.models.qwen2 import Qwen2Model
from vllm.model_executor.models.utils import maybe_prefix

from omni_runtime.families.protocol import RowKind
from omni_runtime.families.vllm_talker import TalkerOnVllm


class Talker(TalkerOnVllm):
    renamed: ClassVar = {"codec_head.": "lm_head."}

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        self._start = config.tts_codec_start_token_id
        self.model = Qwen2Model(vllm_config=vllm_config, prefix=maybe_prefix(prefix, "model"))
        self.model.embed_tokens = VocabParallelEmbedding(config.vocab_size, config.embedding_size)
        self.thinker_to_talker_proj = nn.Linear(config.embedding_size, config.hidden_size)
        self.lm_head = ParallelLMHead(config.vocab_size, config.hidden_size, prefix=maybe_prefix(prefix, "lm_head"))
        self.logits_processor = LogitsProcessor(config.vocab_size)
        self.make_empty_intermediate_tensors = self.model.make_empty_intermediate_tensors

    def embed_input_ids(self, input_ids: torch.Tensor) -> torch.Tensor:
        projected: torch.Tensor = self.thinker_to_talker_proj(self.model.embed_tokens(input_ids))
        return projected

    def input_rows(self, rows: torch.Tensor, kind: RowKind) -> torch.Tensor:
        """The thinker's rows as the layers take them; the projection's bias is in the embeddings that they add to."""
        projection = self.thinker_to_talker_proj
        bias = None if kind is RowKind.ADDED else projection.bias
        return nn.functional.linear(rows.to(projection.weight.dtype), projection.weight, bias)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """The code that starts the sound cannot come again."""
        logits: torch.Tensor = self.logits_processor(self.lm_head, hidden_states)
        logits[:, self._start] = -torch.inf
        return logits

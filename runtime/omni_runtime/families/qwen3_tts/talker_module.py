"""Qwen3-TTS's talker and code predictor as torch modules: Qwen3's layers, with the weights' names of the checkpoints.

The talker reads text and codes in one width and says a frame's first code; the predictor says the others.
"""

from collections.abc import Sequence

import torch
from torch import nn
from transformers import DynamicCache
from transformers.activations import ACT2FN
from transformers.models.qwen3.modeling_qwen3 import Qwen3Model, Qwen3PreTrainedModel

from omni_runtime.families.qwen3_tts.configuration import CodePredictorConfig, TalkerConfig
from omni_runtime.families.row_cache import RowsCache


class TextProjection(nn.Module):
    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        self.linear_fc1 = nn.Linear(config.text_hidden_size, config.text_hidden_size)
        self.linear_fc2 = nn.Linear(config.text_hidden_size, config.hidden_size)
        self.act_fn = ACT2FN[config.hidden_act]

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        projected: torch.Tensor = self.linear_fc2(self.act_fn(self.linear_fc1(rows)))
        return projected


class Layers(Qwen3Model):
    """Qwen3's decoder without its table; each kind of token has a table of its own."""

    def __init__(self, config: TalkerConfig | CodePredictorConfig) -> None:
        super().__init__(config)
        del self.embed_tokens

    def read(
        self,
        rows: torch.Tensor,
        cache: DynamicCache | RowsCache,
        positions: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The states of the last of rows (sequences, rows, hidden), with all that the cache has seen of each sequence.

        Sequences of one length need neither positions nor a mask: attention is causal by itself.
        """
        made = self(
            inputs_embeds=rows,
            attention_mask={"full_attention": mask},
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
        )
        states: torch.Tensor = made.last_hidden_state[:, -1]
        return states


class TalkerLayers(Layers):
    def __init__(self, config: TalkerConfig) -> None:
        super().__init__(config)
        self.codec_embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.text_embedding = nn.Embedding(config.text_vocab_size, config.text_hidden_size)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.codec_embedding


class PredictorLayers(Layers):
    def __init__(self, config: CodePredictorConfig, width: int) -> None:
        super().__init__(config)
        tables = [nn.Embedding(config.vocab_size, width) for _ in range(config.num_code_groups - 1)]
        self.codec_embedding = nn.ModuleList(tables)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.codec_embedding


class CodePredictor(Qwen3PreTrainedModel):
    """Says a frame's codes behind the first, one after another; `width` is the talker's."""

    def __init__(self, config: CodePredictorConfig, width: int) -> None:
        super().__init__(config)
        self.model = PredictorLayers(config, width)
        heads = [
            nn.Linear(config.hidden_size, config.vocab_size, bias=False) for _ in range(config.num_code_groups - 1)
        ]
        self.lm_head = nn.ModuleList(heads)
        self.small_to_mtp_projection: nn.Module = (
            nn.Identity() if config.hidden_size == width else nn.Linear(width, config.hidden_size)
        )
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.model.codec_embedding

    def get_output_embeddings(self) -> nn.Module:
        return self.lm_head

    def logits(self, rows: torch.Tensor, cache: DynamicCache, group: int) -> torch.Tensor:
        """Of a group's codes, (frames, codebook), for rows (frames, rows, width); the first group is the talker's."""
        states = self.model.read(self.small_to_mtp_projection(rows), cache)
        logits: torch.Tensor = self.lm_head[group - 1](states)
        return logits.float()


class TalkerModule(Qwen3PreTrainedModel):
    config: TalkerConfig

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__(config)
        assert isinstance(config.code_predictor_config, CodePredictorConfig)
        self.model = TalkerLayers(config)
        self.text_projection = TextProjection(config)
        self.codec_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.code_predictor = CodePredictor(config.code_predictor_config, config.hidden_size)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.model.codec_embedding

    def get_output_embeddings(self) -> nn.Module:
        return self.codec_head

    def text_rows(self, token_ids: Sequence[int]) -> torch.Tensor:
        """Of shape (tokens, hidden)."""
        ids = torch.tensor(list(token_ids), dtype=torch.long, device=self.device)
        rows: torch.Tensor = self.text_projection(self.model.text_embedding(ids))
        return rows

    def codec_rows(self, token_ids: Sequence[int]) -> torch.Tensor:
        """Of the talker's own tokens, of shape (tokens, hidden)."""
        rows: torch.Tensor = self.model.codec_embedding(
            torch.tensor(list(token_ids), dtype=torch.long, device=self.device)
        )
        return rows

    def code_row(self, code: torch.Tensor, group: int) -> torch.Tensor:
        """Of shape (codes, hidden) for codes of one group, of shape (codes)."""
        table = self.model.codec_embedding if group == 0 else self.code_predictor.model.codec_embedding[group - 1]
        row: torch.Tensor = table(code)
        return row

    def frame_rows(self, codes: torch.Tensor) -> torch.Tensor:
        """Of shape (frames, hidden) for codes of shape (groups, frames): what the talker reads of its own speech."""
        rows = [self.code_row(group_codes, group) for group, group_codes in enumerate(codes)]
        return torch.stack(rows, dim=1).sum(1)

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Of frames' first codes, of shape (frames, vocabulary)."""
        logits: torch.Tensor = self.codec_head(states)
        return logits.float()

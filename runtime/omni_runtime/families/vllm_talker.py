"""What a family's talker is to vLLM, whatever its layers: a part of a checkpoint that reads rows of embeddings."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import nn
from vllm.model_executor.models.interfaces import SupportsMRoPE
from vllm.model_executor.models.utils import AutoWeightsLoader

PREFIX = "talker."


class TalkerOnVllm(nn.Module, SupportsMRoPE):  # type: ignore[misc]
    """A subclass has its decoder as `model`, and `embed_input_ids`."""

    renamed: ClassVar[Mapping[str, str]] = {}
    """Beginnings of weights' names: the checkpoint's, and ours."""

    def forward(
        self,
        input_ids: torch.Tensor,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
        **_: Any,
    ) -> Any:
        embedded = self.embed_input_ids(input_ids) if inputs_embeds is None else inputs_embeds
        return self.model(None, positions, intermediate_tensors, embedded)

    def get_mrope_input_positions(self, input_tokens: list[int], mm_features: Any) -> tuple[torch.Tensor, int]:
        return torch.arange(len(input_tokens)).expand(3, -1), 0

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        own = ((name.removeprefix(PREFIX), tensor) for name, tensor in weights if name.startswith(PREFIX))
        loaded: set[str] = AutoWeightsLoader(self).load_weights((self._renamed(name), tensor) for name, tensor in own)
        return loaded

    def _renamed(self, name: str) -> str:
        for old, new in self.renamed.items():
            if name.startswith(old):
                return new + name.removeprefix(old)
        return name

"""The seam to what transformers' `generate` is made of: one pass at a time, each request with a cache of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel


@dataclass
class Reading:
    """What the model has read and is to read of one request. `arguments` are its own for the next pass."""

    token_ids: torch.Tensor
    """(1, length), the prompt and what came after it."""
    arguments: dict[str, Any]
    positions: torch.Tensor | None = None
    """The prompt's in time, height and width, (length, 3), if those are not its tokens counted."""
    length_read: int = 0

    def add(self, token_id: int) -> None:
        self.token_ids = torch.cat((self.token_ids, self.token_ids.new_tensor([[token_id]])), dim=-1)


@dataclass(frozen=True)
class Pass:
    """What a pass makes of the positions that are new: `logits` (vocabulary,) of the next token, float32.

    `states` are rows (positions, width) by layer: 0 is the input's embeddings, -1 the last layer after its norm.
    """

    logits: torch.Tensor
    states: Mapping[int, torch.Tensor]


class Layers:
    """`hidden_layers` are those whose states are wanted."""

    def __init__(self, module: PreTrainedModel, hidden_layers: tuple[int, ...]) -> None:
        self.module = module
        self.hidden_layers = hidden_layers

    @property
    def vocabulary_size(self) -> int:
        return int(self.module.config.get_text_config(decoder=True).vocab_size)

    @property
    def max_length(self) -> int:
        """Most tokens of a prompt and its answer together."""
        return int(self.module.config.get_text_config(decoder=True).max_position_embeddings)

    def open(self, inputs: Mapping[str, Any]) -> Reading:
        """`inputs` are a processor's: token ids and what goes with them."""
        arguments = {name: self._on_device(value) for name, value in inputs.items()}
        token_ids = arguments.pop("input_ids")
        arguments.setdefault("attention_mask", torch.ones_like(token_ids))
        # Made before the cache is there, so that nothing is taken for a second turn of another request.
        arguments["position_ids"] = self.module._prepare_position_ids_for_generation(token_ids, arguments)
        text = self.module.config.get_text_config(decoder=True)
        arguments |= {"past_key_values": DynamicCache(config=text), "use_cache": True}
        if self.module._supports_logits_to_keep():
            arguments["logits_to_keep"] = 1
        return Reading(token_ids, arguments, _located(arguments["position_ids"]))

    def read(self, reading: Reading) -> Pass:
        """All that the model has not read yet."""
        is_new = not reading.length_read
        prepared = self.module.prepare_inputs_for_generation(
            reading.token_ids,
            next_sequence_length=None if is_new else 1,
            is_first_iteration=is_new,
            **reading.arguments,
        )
        made = self.module(**prepared, return_dict=True, output_hidden_states=bool(self.hidden_layers))
        reading.arguments = self.module._update_model_kwargs_for_generation(made, reading.arguments)
        reading.length_read = reading.token_ids.shape[-1]
        states = {layer: made.hidden_states[layer][0] for layer in self.hidden_layers}
        return Pass(made.logits[0, -1].float(), states)

    def _on_device(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        dtype = self.module.dtype if value.is_floating_point() else None
        return value.to(self.module.device, dtype)


def _located(position_ids: torch.Tensor) -> torch.Tensor | None:
    """Models that place media have three rows of positions, and some one of counted tokens ahead of them."""
    if position_ids.ndim < 3:
        return None
    located = position_ids[-3:, 0].T.int()
    counted = torch.arange(len(located), device=located.device)[:, None]
    return None if (located == counted).all() else located

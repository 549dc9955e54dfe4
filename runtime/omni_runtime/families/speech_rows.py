"""A talker's input on vLLM: rows made of what the thinker hands on, as it comes.

It begins with the prompt's rows and that of the answer's first token. Each further row comes with a step; when the
thinker has ended, a row says so, and one more holds from there on.
"""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

import torch

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Payload, Value
from omni_runtime.engines.items import items_as_they_come
from omni_runtime.engines.protocol import StageRequest
from omni_runtime.families.protocol import NextRows, PromptRows, RowSource
from omni_runtime.stepping.tensors import to_array, to_tensor
from omni_runtime.stepping.weights import HOST

NO_MEDIA = -1
"""Stands for any word of an answer."""


class Speaker(Protocol):
    """What a family's talker makes of a thinker's words, for one request."""

    @property
    def layers(self) -> tuple[int, int]:
        """The thinker's hidden states that it reads."""
        ...

    @property
    def over(self) -> torch.Tensor:
        """The row that says that the answer is over."""
        ...

    @property
    def padding(self) -> torch.Tensor:
        """The row that stands in for all that would follow."""
        ...

    def read(self, token_ids: Sequence[int], first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """A row for each token that the thinker has read, of its states of both layers."""
        ...

    def beginning(self, prompt: "HeardPrompt", rows: torch.Tensor) -> PromptRows:
        """`rows` are the prompt's and that of the answer's first token."""
        ...


@dataclass(frozen=True)
class HeardPrompt:
    """The thinker's. `positions` are its tokens' in time, height and width, of shape (tokens, 3), if it has media."""

    token_ids: list[int]
    positions: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.token_ids)


async def speech_rows(request: StageRequest, speaker: Speaker) -> RowSource:
    prompt, waiting, has_begun = HeardPrompt([]), speaker.over.new_empty((0, len(speaker.over))), False
    async with aclosing(items_as_they_come(request)) as items:
        async for _, item in items:
            prompt = prompt if len(prompt) else _prompt(item)
            unread = [] if has_begun else prompt.token_ids[len(waiting) :]
            waiting = torch.cat([waiting, _read(speaker, item, unread)])
            if not has_begun and len(prompt) and len(waiting) > len(prompt):
                has_begun = True
                yield speaker.beginning(prompt, waiting[: len(prompt) + 1])
                waiting = waiting[len(prompt) + 1 :]
            if has_begun and len(waiting):
                yield NextRows(to_array(waiting))
                waiting = waiting[:0]
    if not has_begun:
        # The answer is its end alone, whose row no step has computed.
        yield speaker.beginning(prompt, torch.cat([waiting, speaker.over[None]]))
    yield NextRows(to_array(torch.stack([speaker.over, speaker.padding])))


def voice_name(parameters: Mapping[str, Value]) -> str | None:
    voice = parameters.get("voice")
    if voice is not None and not isinstance(voice, str):
        raise OmniError(ErrorCode.INVALID_REQUEST, f'parameter "voice" is {voice!r}; it must be a name', "voice")
    return voice


def _prompt(item: Payload) -> HeardPrompt:
    prompt, positions = item.get("prompt_token_ids", []), item.get("prompt_positions")
    if not isinstance(prompt, list):
        raise OmniError(ErrorCode.STAGE_FAILED, "what came from the thinker has no prompt")
    return HeardPrompt(prompt, to_tensor(positions, HOST) if isinstance(positions, Array) else None)


def _read(speaker: Speaker, item: Payload, prompt: Sequence[int]) -> torch.Tensor:
    """A row for each token that the thinker has read since the item before; `prompt` is what is left of its prompt."""
    hidden = item.get("hidden")
    layers = [hidden.get(str(layer)) if isinstance(hidden, Mapping) else None for layer in speaker.layers]
    first, second = (layer if isinstance(layer, Array) else None for layer in layers)
    if hidden == {}:
        return speaker.over.new_empty((0, len(speaker.over)))
    if first is None or second is None:
        wanted = " and ".join(map(str, speaker.layers))
        text = f"the thinker sends no states of its layers {wanted}; set ar.hiddenLayers of its stage"
        raise OmniError(ErrorCode.STAGE_FAILED, text)
    read = list(prompt[: first.shape[0]])
    token_ids = read + [NO_MEDIA] * (first.shape[0] - len(read))
    return speaker.read(token_ids, *(to_tensor(layer, HOST).float() for layer in (first, second)))

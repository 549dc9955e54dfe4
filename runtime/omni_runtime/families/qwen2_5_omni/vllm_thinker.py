"""Qwen2.5-Omni's thinker as vLLM has it, but for where it places a video that has sound. vLLM imports it by name.

vLLM begins such a video a token early, counts each of the two tokens ahead of it and behind it, and goes on behind the
furthest of it. The model was trained with both at one position each, and with what follows behind its last piece.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from vllm.model_executor.models.qwen2_5_omni_thinker import Qwen2_5OmniThinkerForConditionalGeneration


class Thinker(Qwen2_5OmniThinkerForConditionalGeneration):  # type: ignore[misc]
    def get_mrope_input_positions(
        self, input_tokens: list[int], mm_features: Any, **more: Any
    ) -> tuple[torch.Tensor, int]:
        positions, _ = super().get_mrope_input_positions(input_tokens, mm_features, **more)
        ahead = (self.config.vision_start_token_id, self.config.audio_start_token_id)
        media = (self.config.audio_token_index, self.config.video_token_index)
        placed = placed_as_trained(positions, input_tokens, list(videos_with_sound(input_tokens, ahead, media)))
        return placed, int(placed.max()) + 1 - len(input_tokens)


def placed_as_trained(
    positions: torch.Tensor, tokens: Sequence[int], videos: Sequence[tuple[int, int]]
) -> torch.Tensor:
    """Of shape (3, tokens); `videos` are where their tokens begin and end."""
    placed = positions.clone()
    for first, end in videos:
        counted = int(placed[0, end - 1])
        placed[:, first:end] = placed[:, first - 1 : end - 1].clone()
        placed[:, first - 1] = placed[:, first - 2]
        piece = next(place for place in range(end - 1, first - 2, -1) if tokens[place] != tokens[end - 1]) + 1
        following = int(placed[:, piece:end].max()) + 1
        placed[:, end : end + 2] = following
        placed[:, end + 2 :] -= counted + 2 - following
    return placed


def videos_with_sound(tokens: Sequence[int], ahead: tuple[int, int], media: Sequence[int]) -> Iterator[tuple[int, int]]:
    for place in range(2, len(tokens)):
        if (tokens[place - 2], tokens[place - 1]) == ahead:
            end = place
            while tokens[end] in media:
                end += 1
            yield place, end

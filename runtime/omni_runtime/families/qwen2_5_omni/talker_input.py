"""What passes from Qwen2.5-Omni's thinker to its talker and on to token2wav, as transformers builds it. Pure.

A row is a token's input embedding and its last hidden state, added up; where a token stands for media, the state
alone. All rows are in the thinker's width; the talker projects their sums. Transformers 5 leaves out the two codes at
the end of the talker's prompt where a prompt is alone and without padding, and reads them otherwise; we always do, as
it was trained.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from transformers import Qwen2_5OmniTalkerConfig, Qwen2_5OmniThinkerConfig

from omni_runtime.families.reply_rows import ReplyRows

THINKER_LAYERS = (0, -1)
"""The hidden states that `select` needs: the input embeddings, and what the last layer makes, after its norm."""


@dataclass(frozen=True)
class ThinkerRows:
    """Rows of the thinker's embedding table that the talker needs, each of shape (width)."""

    begin: torch.Tensor
    """Of the voice's own first token."""
    over: torch.Tensor
    padding: torch.Tensor


@dataclass(frozen=True)
class CodecRows:
    """Rows of the talker's embedding table."""

    padding: torch.Tensor
    begin: torch.Tensor


def media_ids(config: Qwen2_5OmniThinkerConfig) -> tuple[int, ...]:
    return config.audio_token_index, config.image_token_index, config.video_token_index


def select(
    token_ids: Sequence[int], embeddings: torch.Tensor, states: torch.Tensor, media: Collection[int]
) -> torch.Tensor:
    """What leaves the thinker: a row for each token that it has read."""
    is_media = torch.tensor([token_id in media for token_id in token_ids], device=states.device)
    return states + embeddings.masked_fill(is_media[:, None], 0)


def row_ids(config: Qwen2_5OmniTalkerConfig, voice_token: int) -> tuple[int, int, int]:
    """Whose rows of the thinker's table are ThinkerRows, in its order."""
    return voice_token, config.tts_text_end_token_id, config.tts_text_pad_token_id


def prompt_ids(config: Qwen2_5OmniTalkerConfig, prompt_length: int) -> list[int]:
    """The talker's prompt as codes, which its repetition penalty counts."""
    return [config.tts_codec_mask_token_id] * prompt_length + [
        config.tts_codec_pad_token_id,
        config.tts_codec_start_token_id,
    ]


def position_ids(prompt: Sequence[int], voice_token: int, first_token: int) -> list[int]:
    """The text that the talker's positions are counted over, media included."""
    return [*prompt, voice_token, first_token]


def positions(prompt: torch.Tensor) -> torch.Tensor:
    """The talker's, of those of the thinker's prompt in time, height and width, of shape (tokens, 3)."""
    beginning = prompt[-1, 0] + 1 + torch.arange(2, dtype=prompt.dtype)
    return torch.cat((prompt, beginning[:, None].expand(-1, 3)))


def prompt_rows(rows: torch.Tensor, reply: ReplyRows, thinker: ThinkerRows, codec: CodecRows) -> torch.Tensor:
    """The talker's prompt: what the thinker read, then the beginning of the speech with its first word."""
    begin = torch.stack((thinker.begin + codec.padding, reply.row(0) + codec.begin))
    return torch.cat((rows, begin))


def step_row(code_row: torch.Tensor, reply: ReplyRows, step: int) -> torch.Tensor:
    """What the talker reads in a step, counted from 0 behind its prompt: its last code and the next word."""
    return code_row + reply.row(step + 1)


def stop_ids(config: Qwen2_5OmniTalkerConfig) -> tuple[int, int]:
    """Either ends the speech, and is no code."""
    return config.tts_codec_pad_token_id, config.tts_codec_end_token_id


def suppressed_ids(config: Qwen2_5OmniTalkerConfig) -> tuple[int]:
    return (config.tts_codec_start_token_id,)


def codes(token_ids: Sequence[int], config: Qwen2_5OmniTalkerConfig) -> torch.Tensor:
    """What leaves the talker: one group of codes, of shape (1, frames), without the token that ends the speech."""
    ends = stop_ids(config)
    spoken = [token_id for token_id in token_ids if token_id not in ends]
    return torch.tensor([spoken], dtype=torch.int32)

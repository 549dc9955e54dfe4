"""What passes from Qwen3-Omni's thinker to its talker, as transformers builds it. Pure.

A row is a token's input embedding or, where it stands for media, its state of a middle layer. The talker projects the
two kinds unlike, hears the user's turns and the answer, and nothing of the system's.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from transformers import Qwen3OmniMoeConfig

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.families.reply_rows import ReplyRows

if TYPE_CHECKING:
    from transformers import Qwen3OmniMoeTalkerConfig, Qwen3OmniMoeThinkerConfig

SUPPRESSED = 1024
"""So many of the talker's last ids are never said, but for the one that ends its speech."""
TURN_HEAD = 3
"""Tokens before a turn's first word: its start, its role, a new line."""


class Projections(Protocol):
    """The talker's own layers in front of it: to its width, (tokens, thinker width) to (tokens, talker width)."""

    def text_projection(self, rows: torch.Tensor) -> torch.Tensor: ...

    def hidden_projection(self, rows: torch.Tensor) -> torch.Tensor: ...


@dataclass(frozen=True)
class SpeechRows:
    """Projected rows of the thinker's embedding table, each of shape (talker width)."""

    begin: torch.Tensor
    over: torch.Tensor
    padding: torch.Tensor


def thinker_layers(config: "Qwen3OmniMoeTalkerConfig") -> tuple[int, int]:
    """The hidden states that `select` needs: the input embeddings and a middle layer's."""
    return 0, config.accept_hidden_layer


def media_ids(config: "Qwen3OmniMoeThinkerConfig") -> tuple[int, ...]:
    return config.audio_token_id, config.image_token_id, config.video_token_id


def select(
    token_ids: Sequence[int], embeddings: torch.Tensor, states: torch.Tensor, media: Collection[int]
) -> torch.Tensor:
    """What leaves the thinker: a row for each token that it has read."""
    is_media = torch.tensor([token_id in media for token_id in token_ids], device=states.device)
    return torch.where(is_media[:, None], states, embeddings)


def row_ids(config: Qwen3OmniMoeConfig) -> tuple[int, int, int]:
    """Whose rows of the thinker's table are SpeechRows, in its order, once projected as text."""
    return config.tts_bos_token_id, config.tts_eos_token_id, config.tts_pad_token_id


def user_positions(prompt: Sequence[int], config: Qwen3OmniMoeConfig) -> list[int]:
    """Where the prompt's tokens belong to a turn of the user."""
    found, start = list[int](), 0
    for position, token_id in enumerate(prompt):
        start = position if token_id == config.im_start_token_id else start
        if prompt[min(start + 1, len(prompt) - 1)] == config.user_token_id:
            found.append(position)
    return found


def heard_positions(prompt: Sequence[int], config: Qwen3OmniMoeConfig) -> list[int]:
    """What the talker's prompt has of the thinker's: the user's turns, then the head of the answer's."""
    start = answer_start(prompt, config)
    return [*user_positions(prompt, config), *range(start, start + TURN_HEAD)]


def positions(prompt: torch.Tensor, heard: Sequence[int], following: int) -> torch.Tensor:
    """The talker's, of those of the thinker's prompt in time, height and width, of shape (tokens, 3).

    It closes up where something was left out; media keep their places to each other.
    """
    own = prompt[list(heard)]
    for place in range(len(heard)):
        if not place or heard[place] != heard[place - 1] + 1:
            before = own[place - 1, 0] + 1 if place else 0
            own[place:] += before - own[place, 0]
    after = own[-1, 0] + 1 + torch.arange(following, dtype=own.dtype)
    return torch.cat((own, after[:, None].expand(-1, 3)))


def answer_start(prompt: Sequence[int], config: Qwen3OmniMoeConfig) -> int:
    """Where the turn begins that the thinker goes on with; OmniError if the prompt ends in no such turn."""
    head = [config.im_start_token_id, config.assistant_token_id]
    for position in range(len(prompt) - 2, -1, -1):
        if list(prompt[position : position + 2]) == head:
            return position
    text = "this talker speaks answers of a chat alone, and the prompt has no turn of the assistant"
    raise OmniError(ErrorCode.INVALID_REQUEST, text, "modalities")


def speaker_of(config: "Qwen3OmniMoeTalkerConfig", name: str | None) -> int:
    """The token of the voice that a request asks for, however it writes the name; without one, the first."""
    speakers: Mapping[str, int] = config.speaker_id
    if name is None:
        return next(iter(speakers.values()))
    for known, token_id in speakers.items():
        if known.casefold() == name.casefold():
            return token_id
    known = ", ".join(sorted(speakers))
    raise OmniError(ErrorCode.INVALID_REQUEST, f'there is no voice "{name}"; the voices are {known}', "voice")


def codec_ids(config: "Qwen3OmniMoeTalkerConfig", speaker: int) -> list[int]:
    """The talker's own tokens at the end of its prompt; `speaker` is one of them."""
    return [
        config.codec_nothink_id,
        config.codec_think_bos_id,
        config.codec_think_eos_id,
        speaker,
        config.codec_pad_id,
        config.codec_bos_id,
    ]


def prompt_ids(prompt: Sequence[int], config: Qwen3OmniMoeConfig) -> list[int]:
    """The text that the talker's positions are counted over, media included."""
    count = TURN_HEAD + len(codec_ids(config.talker_config, 0))
    return [prompt[position] for position in user_positions(prompt, config)] + [config.tts_pad_token_id] * count


def prompt_rows(
    prompt: Sequence[int], rows: torch.Tensor, config: Qwen3OmniMoeConfig, projections: Projections
) -> torch.Tensor:
    """The first part of the talker's prompt, projected: the user's turns, then the head of the answer's."""
    users = user_positions(prompt, config)
    media = media_ids(config.thinker_config)
    is_media = torch.tensor([prompt[position] in media for position in users], dtype=torch.bool, device=rows.device)
    own = rows[users]
    heard = projections.text_projection(own)
    if is_media.any():
        heard = torch.where(is_media[:, None], projections.hidden_projection(own), heard)
    start = answer_start(prompt, config)
    return torch.cat((heard, projections.text_projection(rows[start : start + TURN_HEAD])))


def beginning_rows(codec_rows: torch.Tensor, reply: ReplyRows, speech: SpeechRows) -> torch.Tensor:
    """The rest of the talker's prompt: padding and the first word, over its own tokens, of shape (6, talker width)."""
    padding = speech.padding.expand(len(codec_rows) - 2, -1)
    return torch.cat((padding, speech.begin[None], reply.rows(0, 1))) + codec_rows


def step_row(code_rows: torch.Tensor, reply: ReplyRows, step: int) -> torch.Tensor:
    """What the talker reads in a step, counted from 0 behind its prompt: its last frame's codes and the next word."""
    return code_rows.sum(0) + reply.row(step + 1)


def suppressed_ids(config: "Qwen3OmniMoeTalkerConfig") -> list[int]:
    """Never said: the ids behind the codes, but for the one that ends the speech."""
    vocabulary = config.text_config.vocab_size
    return [token for token in range(vocabulary - SUPPRESSED, vocabulary) if token != config.codec_eos_token_id]

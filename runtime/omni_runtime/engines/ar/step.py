"""What one engine step made for one request, in words of our own."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

FinishReason: TypeAlias = Literal["stop", "length"]


@dataclass(frozen=True)
class Candidate:
    """A token that might have come at some place, and how likely it was."""

    token_id: int
    logprob: float


@dataclass(frozen=True)
class Chosen:
    """The token that came, and the likeliest ones at its place."""

    candidate: Candidate
    top: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class Step:
    """What is new since the step before; more than one token if the reader was slow.

    `prompt_token_ids` is only on the first step, `finish_reason` only on the last. `stop_reason` is the text or token
    that ended the answer, unless it was the model's own end.
    """

    token_ids: tuple[int, ...]
    text: str = ""
    prompt_token_ids: tuple[int, ...] | None = None
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    logprobs: tuple[Chosen, ...] = field(default=())

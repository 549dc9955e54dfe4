"""Which code each of several speeches says next: by the rules of transformers' `generate`, for all of them at once.

Its processors and draws, made for one speech after the other, take longer than a small talker's layers do for all
together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from omni_runtime.stepping.warpers import warpers


@dataclass(frozen=True)
class Narrowing:
    """What a speech draws its codes from. A temperature of 0 takes the likeliest."""

    temperature: float
    top_k: int
    top_p: float


@dataclass
class Choice:
    """How one speech chooses. Its dice are its own, so that no neighbour changes what it gets."""

    repetition_penalty: float
    least: int
    """Codes that come before any that ends the speech."""
    narrowing: Narrowing
    dice: torch.Generator
    has_come: torch.Tensor
    """Of shape (codes): whether it has come in the prompt or was said since."""
    count: int = 0

    def say(self, code: int) -> None:
        self.has_come[code] = True
        self.count += 1


@dataclass(frozen=True)
class Chooser:
    """Codes that are `never` said, and those that end a speech."""

    never: torch.Tensor
    ends: torch.Tensor

    def choose(self, choices: Sequence[Choice], logits: torch.Tensor) -> torch.Tensor:
        """A code for each row of the logits, of shape (rows)."""
        scores = _penalized(choices, logits).index_fill(1, self.never, -torch.inf)
        early = torch.tensor([choice.count < choice.least for choice in choices], device=scores.device)
        scores = torch.where(early[:, None], scores.index_fill(1, self.ends, -torch.inf), scores)
        return drawn([choice.narrowing for choice in choices], [choice.dice for choice in choices], scores)


def drawn(narrowings: Sequence[Narrowing], dice: Sequence[torch.Generator], scores: torch.Tensor) -> torch.Tensor:
    """A code for each row of the scores, of shape (rows). Rows that are narrowed alike are narrowed together."""
    codes = scores.argmax(-1)
    for narrowing in dict.fromkeys(narrowings):
        if narrowing.temperature > 0:
            rows = [row for row, own in enumerate(narrowings) if own == narrowing]
            codes[rows] = _cast([dice[row] for row in rows], _chances(narrowing, scores[rows]))
    return codes


def _penalized(choices: Sequence[Choice], logits: torch.Tensor) -> torch.Tensor:
    """What has come is less likely to come again, by the speech's own penalty."""
    has_come = torch.stack([choice.has_come for choice in choices])
    penalties = logits.new_tensor([choice.repetition_penalty for choice in choices])[:, None]
    return torch.where(has_come, torch.where(logits < 0, logits * penalties, logits / penalties), logits)


def _chances(narrowing: Narrowing, scores: torch.Tensor) -> torch.Tensor:
    nothing_said = scores.new_empty((len(scores), 0), dtype=torch.long)
    for warper in warpers(narrowing.temperature, narrowing.top_k, narrowing.top_p):
        scores = warper(nothing_said, scores)
    return scores.softmax(-1)


def _cast(dice: Sequence[torch.Generator], chances: torch.Tensor) -> torch.Tensor:
    """What torch.multinomial, which knows one generator alone, draws from each row with its own."""
    waits = torch.empty_like(chances)
    for row, own in zip(waits, dice, strict=True):
        row.exponential_(generator=own)
    return (chances / waits).argmax(-1)

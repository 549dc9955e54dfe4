"""Which code each of several speeches says next: by the rules of transformers' `generate`, for all of them at once.

Its processors, called for one speech after the other, take longer than a small talker's layers do for all together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from omni_runtime.stepping.warpers import Warper


@dataclass
class Choice:
    """How one speech chooses. Its dice are its own, so that no neighbour changes what it gets."""

    repetition_penalty: float
    least: int
    """Codes that come before any that ends the speech."""
    warpers: tuple[Warper, ...]
    """None if it takes the likeliest code."""
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

    def choose(self, choices: Sequence[Choice], logits: torch.Tensor) -> list[int]:
        """A code for each row of the logits."""
        scores = _penalized(choices, logits).index_fill(1, self.never, -torch.inf)
        early = torch.tensor([choice.count < choice.least for choice in choices], device=scores.device)
        scores = torch.where(early[:, None], scores.index_fill(1, self.ends, -torch.inf), scores)
        likeliest: list[int] = scores.argmax(-1).tolist()
        return [
            _drawn(choice, row[None]) if choice.warpers else best
            for choice, row, best in zip(choices, scores, likeliest, strict=True)
        ]


def _penalized(choices: Sequence[Choice], logits: torch.Tensor) -> torch.Tensor:
    """What has come is less likely to come again, by the speech's own penalty."""
    has_come = torch.stack([choice.has_come for choice in choices])
    penalties = logits.new_tensor([choice.repetition_penalty for choice in choices])[:, None]
    return torch.where(has_come, torch.where(logits < 0, logits * penalties, logits / penalties), logits)


def _drawn(choice: Choice, scores: torch.Tensor) -> int:
    nothing_said = scores.new_empty((1, 0), dtype=torch.long)
    for warper in choice.warpers:
        scores = warper(nothing_said, scores)
    return int(torch.multinomial(scores.softmax(-1), 1, generator=choice.dice))

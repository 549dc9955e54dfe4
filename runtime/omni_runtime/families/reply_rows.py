"""What a talker adds to its own codes, step by step: a row for each word of the answer, one that ends it, then padding.

The thinker makes the rows while the talker speaks. Its last token has none, as no step has read it.
"""

from dataclasses import dataclass, field

import torch


@dataclass
class ReplyRows:
    """The rows of one answer, of shape (width), in the order in which the talker takes them."""

    over: torch.Tensor
    """Says that the answer is over."""
    padding: torch.Tensor
    """Stands in for all that would follow."""
    _rows: list[torch.Tensor] = field(default_factory=list)
    _is_ended: bool = False

    def add(self, rows: torch.Tensor) -> None:
        """Of shape (tokens, width)."""
        self._rows += rows

    def end(self) -> None:
        """The thinker has said all."""
        self._is_ended = True

    def has(self, step: int) -> bool:
        """Whether the talker could take its row of this step now, counted from 0, which is in its prompt."""
        return self._is_ended or step < len(self._rows)

    def row(self, step: int) -> torch.Tensor:
        """IndexError if the thinker has not come so far."""
        if step < len(self._rows):
            return self._rows[step]
        if not self._is_ended:
            raise IndexError(f"the talker is at word {step}, and the thinker has said {len(self._rows)}")
        return self.over if step == len(self._rows) else self.padding

    def rows(self, first: int, count: int) -> torch.Tensor:
        return torch.stack([self.row(step) for step in range(first, first + count)])

"""Keys and values of one sequence, and a step over several sequences of unlike lengths with transformers' layers."""

from collections.abc import Sequence
from typing import TypeAlias

import torch

KeysAndValues: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""Of one layer, each of shape (heads, positions, width)."""
RowCache: TypeAlias = tuple[KeysAndValues, ...]
"""Of one sequence, layer by layer. A step makes a new one, so that a step that fails changes nothing."""


def length(cache: RowCache) -> int:
    return cache[0][0].shape[1] if cache else 0


class RowsCache:
    """What the layers of transformers ask in one step: each row's own past with what is new, and padding behind it."""

    def __init__(self, rows: Sequence[RowCache]) -> None:
        self._rows = rows
        self._grown: list[list[KeysAndValues]] = [[] for _ in rows]

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int) -> KeysAndValues:
        """Of shape (rows, heads, new, width); called by each layer in turn."""
        for row, grown in enumerate(self._grown):
            new = keys[row], values[row]
            grown.append(_appended(self._rows[row][layer], new) if self._rows[row] else new)
        return _stacked([grown[-1][0] for grown in self._grown]), _stacked([grown[-1][1] for grown in self._grown])

    def mask(self, new: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor | None:
        """For the layers, of shape (rows, 1, new, positions): each sees what came before it and itself.

        None if that is all there is.
        """
        if new == len(self._rows) == 1:
            return None
        lengths = torch.tensor([length(row) for row in self._rows])
        seen = torch.arange(int(lengths.max()) + new) <= (lengths[:, None] + torch.arange(new))[:, :, None]
        hidden = torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)
        return hidden[:, None].to(device)

    def grown(self) -> list[RowCache]:
        """What is known of each row after the step."""
        return [tuple(row) for row in self._grown]


def _appended(known: KeysAndValues, new: KeysAndValues) -> KeysAndValues:
    return torch.cat((known[0], new[0]), dim=1), torch.cat((known[1], new[1]), dim=1)


def _stacked(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Padded at the end, where the mask hides it."""
    if len(rows) == 1:
        return rows[0][None]
    heads, _, width = rows[0].shape
    stacked = rows[0].new_zeros((len(rows), heads, max(row.shape[1] for row in rows), width))
    for row, filled in zip(rows, stacked, strict=True):
        filled[:, : row.shape[1]] = row
    return stacked

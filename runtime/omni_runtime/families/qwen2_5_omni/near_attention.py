"""Attention of the diffusion transformer, whose frames see their own block and few around it: each block by itself.

Transformers asks each frame about all others and hides the far ones, which costs the square of a speech's length.
"""

from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import (
    DiTAttention,
    apply_rotary_pos_emb,
    deinterleave_head_dim,
)

Rotary: TypeAlias = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Sight:
    """How many blocks before and after its own a frame sees."""

    back: int
    ahead: int

    def near(self, blocks: torch.Tensor) -> torch.Tensor:
        """Of (speeches, blocks, frames, …), the frames that each block sees side by side; zeros beyond the ends."""
        count, beside = blocks.shape[1], (0, 0) * (blocks.dim() - 2)
        around = pad(blocks, (*beside, self.back, self.ahead))
        return torch.cat([around[:, place : place + count] for place in range(self.back + 1 + self.ahead)], dim=2)


@dataclass(frozen=True)
class View:
    """A sight over certain speeches. `mask`, of (speeches, blocks, frames, frames near), is added to the interest."""

    sight: Sight
    mask: torch.Tensor


def view_of(sight: Sight, is_real: torch.Tensor) -> View:
    """`is_real` of (speeches, blocks, frames) tells padding, which is seen by padding alone: it must see something."""
    is_seen, is_there = sight.near(is_real), sight.near(torch.ones_like(is_real))
    is_hidden = ~(is_seen[:, :, None] | (is_there[:, :, None] & ~is_real[..., None]))
    return View(sight, torch.zeros(is_hidden.shape, device=is_real.device).masked_fill(is_hidden, -torch.inf))


def attend(attention: DiTAttention, hidden: torch.Tensor, rotary: Rotary, view: View) -> torch.Tensor:
    """What the layer makes of (speeches, frames, width), where the frames are whole blocks."""
    projections = (attention.to_q, attention.to_k, attention.to_v)
    queries, keys, values = (part(hidden).unflatten(2, (attention.heads, -1)) for part in projections)
    _turn(queries, keys, rotary)
    blocks = [part.unflatten(1, view.mask.shape[1:3]) for part in (queries, keys, values)]
    near = [blocks[0], *(view.sight.near(part) for part in blocks[1:])]
    queries, keys, values = (part.flatten(0, 1).transpose(1, 2) for part in near)
    made = scaled_dot_product_attention(queries, keys, values, view.mask.flatten(0, 1)[:, None])
    joined: torch.Tensor = attention.to_out[0](made.transpose(1, 2).reshape(*hidden.shape[:2], -1))
    return joined


def _turn(queries: torch.Tensor, keys: torch.Tensor, rotary: Rotary) -> None:
    """In place, and of the heads the first alone, as the model was trained."""
    first = (deinterleave_head_dim(part[..., :1, :]) for part in (queries, keys))
    queries[..., :1, :], keys[..., :1, :] = apply_rotary_pos_emb(*first, *rotary, unsqueeze_dim=-2)

"""The items that a generation stage takes in, checked: frames of codes that the codec has."""

from collections.abc import Sequence

import torch

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Payload
from omni_runtime.stepping.tensors import to_tensor
from omni_runtime.stepping.weights import HOST

CODES, LEAD_IN = "codes", "lead_in"
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


def codes_of(item: Payload, groups: int, codebook_size: int) -> torch.Tensor:
    """Of shape (groups, frames) in host memory; OmniError if the stage before made something else."""
    array = item.get(CODES)
    if not isinstance(array, Array) or array.dtype not in INTEGERS:
        kind = array.dtype if isinstance(array, Array) else type(array).__name__
        raise _unfit(f'"{CODES}" of type {kind}, and the codec reads an array of integers')
    if len(array.shape) != 2 or array.shape[0] != groups:
        raise _unfit(f"codes of shape {list(array.shape)}, and the codec reads ({groups}, frames)")
    codes = to_tensor(array, HOST).long()
    if codes.numel() and not 0 <= codes.min() <= codes.max() < codebook_size:
        raise _unfit(f"codes from {codes.min()} to {codes.max()}, and the codec has 0 to {codebook_size - 1}")
    return codes


def frames_of(items: Sequence[Payload], groups: int, codebook_size: int) -> tuple[torch.Tensor, int]:
    """The codes of several items as one piece, and how many of its first frames only lead in."""
    codes, lead_in = [codes_of(item, groups, codebook_size) for item in items], 0
    for place, item in enumerate(items):
        if own := lead_in_of(item, codes[place].shape[1]):
            lead_in = sum(before.shape[1] for before in codes[:place]) + own
    return torch.cat(codes, dim=1), lead_in


def lead_in_of(item: Payload, frames: int) -> int:
    """How many of the first frames only lead in: the others sound as if these had been heard before them."""
    count = item.get(LEAD_IN, 0)
    if not isinstance(count, int) or not 0 <= count <= frames:
        raise _unfit(f'"{LEAD_IN}" {count!r} for {frames} frames')
    return count


def _unfit(text: str) -> OmniError:
    return OmniError(ErrorCode.STAGE_FAILED, f"the stage before made {text}")

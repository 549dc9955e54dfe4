"""What narrows a draw down to the likelier candidates, by transformers' warpers in the order of its `generate`."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from transformers import MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

Warper: TypeAlias = Callable[..., torch.Tensor]


def warpers(temperature: float, top_k: int, top_p: float, min_p: float = 0.0) -> Iterator[Warper]:
    """None for a temperature of 0, which takes the likeliest; a `top_k` of 0, `top_p` of 1, `min_p` of 0 is off."""
    if temperature == 0:
        return
    yield TemperatureLogitsWarper(float(temperature))
    if min_p > 0:
        yield MinPLogitsWarper(float(min_p))
    if top_k > 0:
        yield TopKLogitsWarper(int(top_k))
    if top_p < 1:
        yield TopPLogitsWarper(float(top_p))

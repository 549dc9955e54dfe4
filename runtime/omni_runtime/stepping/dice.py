"""Draws of several requests in one step: a step that fails has drawn nothing."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch


@contextmanager
def drawn_or_not(generators: Sequence[torch.Generator]) -> Iterator[None]:
    """If the block raises, the generators are as before it."""
    states = [generator.get_state() for generator in generators]
    try:
        yield
    except BaseException:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
        raise

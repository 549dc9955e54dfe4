"""Draws of several requests in one step: a step that fails has drawn nothing."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def drawn_or_not(generators: Sequence[torch.Generator]) -> Iterator[None]:
    """If the block raises, the generators are as before it."""
    with ExitStack() as back:
        for generator in generators:
            back.callback(generator.set_state, generator.get_state())
        yield
        back.pop_all()

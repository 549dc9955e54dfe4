"""Makes a model library log as we do: through the root logger and without progress bars."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import transformers

DOUBTFUL_NOTICES = ("transformers.configuration_utils", "transformers.modeling_rope_utils")
"""Warn of token ids beyond a talker's vocabulary and of sections of a rope, both as the published models have them."""
LOADING_REPORTS = ("transformers.modeling_utils", "transformers.distributed.tensor_parallel")


class LibraryLogging(Protocol):
    """What transformers and diffusers both offer as `utils.logging`."""

    def disable_progress_bar(self) -> None: ...

    def disable_default_handler(self) -> None: ...

    def enable_propagation(self) -> None: ...


def tame(library: LibraryLogging) -> None:
    library.disable_progress_bar()
    library.disable_default_handler()
    library.enable_propagation()


def tame_transformers() -> None:
    tame(transformers.utils.logging)
    for name in DOUBTFUL_NOTICES:
        logging.getLogger(name).setLevel(logging.ERROR)


@contextmanager
def without_loading_report() -> Iterator[None]:
    """Transformers lists every weight that a part of a checkpoint does not need, and all that it does not spread."""
    before = {name: logging.getLogger(name).level for name in LOADING_REPORTS}
    for name in before:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)

"""Makes the libraries log as we do: through the root logger, without progress bars and notices for each request."""

import logging

import diffusers
import transformers

EXPERIMENTAL_NOTICES = "diffusers.guiders.guider_utils"
"""Warns at every construction of a guider, which is once per request, that the class may change."""


def tame_library_logs() -> None:
    for library in (diffusers.utils.logging, transformers.utils.logging):
        library.disable_progress_bar()
        library.disable_default_handler()
        library.enable_propagation()
    logging.getLogger(EXPERIMENTAL_NOTICES).setLevel(logging.ERROR)

"""Silences what the libraries write per component or per request; our own lines say what matters."""

import logging

import diffusers
import transformers

EXPERIMENTAL_NOTICES = "diffusers.guiders.guider_utils"
"""Warns at every construction of a guider, which is once per request, that the class may change."""


def silence_libraries() -> None:
    diffusers.utils.logging.disable_progress_bar()
    transformers.utils.logging.disable_progress_bar()
    logging.getLogger(EXPERIMENTAL_NOTICES).setLevel(logging.ERROR)

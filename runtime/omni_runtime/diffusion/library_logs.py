"""Makes diffusers and transformers log as we do, without notices for each request."""

import logging

import diffusers

from omni_runtime.library_logs import tame, tame_transformers

EXPERIMENTAL_NOTICES = "diffusers.guiders.guider_utils"
"""Warns at every construction of a guider, which is once per request, that the class may change."""


def tame_library_logs() -> None:
    tame(diffusers.utils.logging)
    tame_transformers()
    logging.getLogger(EXPERIMENTAL_NOTICES).setLevel(logging.ERROR)

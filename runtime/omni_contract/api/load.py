"""Reads model files, for `omni validate`, `omni render` and local mode, so that all refuse the same files."""

from pathlib import Path as FilePath

import yaml

from omni_contract.api.v1alpha1.resource import OmniModel


def load_model(path: FilePath) -> OmniModel:
    """The file's only OmniModel; raises InvalidModelError with every problem."""
    return OmniModel.model_validate(yaml.safe_load(path.read_text()))

"""Collecting this folder imports torch, which takes seconds: only who asks for it waits, or who counts all tests."""

import pytest


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    return None if config.option.markexpr == "gpu" or config.option.collectonly else True

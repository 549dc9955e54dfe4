"""Collecting this folder imports torch, which takes seconds; a level that does not ask for it need not wait. Whoever counts tests does."""

import pytest


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    return None if config.option.markexpr == "gpu" or config.option.collectonly else True

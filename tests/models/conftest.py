"""Every test of this folder needs torch and is of level `models`; they share tiny checkpoints."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from omni_runtime.families.registry import family

HERE = Path(__file__).parent


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Collecting this folder imports torch, which takes seconds; a level that leaves it out need not wait."""
    expression = config.option.markexpr
    is_asked_for = not expression or "models" in expression.replace("not models", "")
    return None if is_asked_for else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.models)


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The tiny checkpoint of a family, built when it is first asked for."""
    root = tmp_path_factory.mktemp("models")

    @cache
    def built(name: str) -> Path:
        family(name).build_tiny(root / name, 0, lambda line: None)
        return root / name

    return built


@pytest.fixture(scope="session")
def tiny_model(tiny_checkpoint: Callable[[str], Path]) -> Path:
    return tiny_checkpoint("qwen-image")

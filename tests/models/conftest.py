"""Every test of this folder needs torch and is of level `models`; it shares one tiny checkpoint per session."""

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
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "qwen-image"
    family("qwen-image").build_tiny(folder, 0, lambda line: None)
    return folder

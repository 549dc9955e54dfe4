"""Every test of this folder needs torch and is of level `models`; they share tiny checkpoints."""

from collections.abc import AsyncIterator, Callable
from functools import cache
from pathlib import Path

import pytest
import pytest_asyncio

from omni_runtime.engines.protocol import Engine
from omni_runtime.families.registry import family
from tests.models.ar_engines import ar_file, loaded

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


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def thinker_on_vllm(tiny_checkpoint: Callable[[str], Path]) -> AsyncIterator[Engine]:
    """Of a tiny Qwen2.5-Omni, for tests that leave it as it is: it takes half a minute to start."""
    folder = tiny_checkpoint("qwen2.5-omni")
    async with loaded(ar_file(folder, "thinker", "qwen2.5-omni", hidden_layers=[0, 1, -1])) as thinker:
        yield thinker

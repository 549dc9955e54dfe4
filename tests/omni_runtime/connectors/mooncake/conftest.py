"""What the tests of both libraries of the wheel need."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from omni_runtime.connectors.mooncake.library import ALWAYS


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    """Those for RDMA that this machine shows."""
    for name in ("mlx5_0", "mlx5_1"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, SimpleNamespace], None]:
    """Lets a module of the wheel be imported already, and under our settings."""

    def put(name: str, module: SimpleNamespace) -> None:
        monkeypatch.setitem(sys.modules, name, module)
        for variable, value in ALWAYS.items():
            monkeypatch.setenv(variable, value)

    return put

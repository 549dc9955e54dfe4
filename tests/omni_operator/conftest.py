"""Fixtures of the operator's unit tests: golden files, which `--update-golden` writes anew."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from omni_operator.objects import Manifest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, list[Manifest]], None]:
    """Compares manifests with a file; a deliberate change is seen in the diff of the commit."""

    def check(name: str, manifests: list[Manifest]) -> None:
        path = GOLDEN / f"{name}.yaml"
        text = yaml.safe_dump_all(manifests, sort_keys=False, width=120)
        if request.config.getoption("--update-golden"):
            path.write_text(text)
        assert text == path.read_text(), f"{path} differs; if that is meant, run pytest with --update-golden"

    return check

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory, of the test's own."""
    made = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="omni-test-"))
    yield made
    shutil.rmtree(made)

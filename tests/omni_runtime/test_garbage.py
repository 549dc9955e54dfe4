"""A start looks for garbage rarely; what it made is not looked at any more."""

import gc
from collections.abc import Iterator

import pytest

from omni_runtime.garbage import RARELY, USUAL, keep_what_is_here, look_rarely


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)


def test_a_start_looks_rarely_and_what_it_made_is_never_looked_at_again() -> None:
    look_rarely()
    assert gc.get_threshold()[0] == RARELY
    made = [[] for _ in range(100)]
    frozen = gc.get_freeze_count()
    keep_what_is_here()
    assert gc.get_threshold() == USUAL
    assert gc.get_freeze_count() >= frozen + len(made)
    assert not any(one is made for one in gc.get_objects())

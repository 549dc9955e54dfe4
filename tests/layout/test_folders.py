"""No test lies where pytest does not look: it leaves out folders by their names, and says nothing."""

from fnmatch import fnmatch

import pytest

from tests.layout.source import CHECKOUT

TESTS = CHECKOUT / "tests"


def test_pytest_looks_into_every_folder_that_holds_tests(pytestconfig: pytest.Config) -> None:
    folders = {name for file in TESTS.rglob("test_*.py") for name in file.relative_to(TESTS).parent.parts}
    left_out = pytestconfig.getini("norecursedirs")
    assert [name for name in sorted(folders) if any(fnmatch(name, pattern) for pattern in left_out)] == []

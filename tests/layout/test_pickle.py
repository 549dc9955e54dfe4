"""What comes over a wire or from a file is never turned into objects by running what it says."""

import ast
from collections.abc import Iterator

import pytest

from tests.layout.source import Source, our_sources

RUN_WHAT_THEY_READ = {"pickle", "cloudpickle", "dill", "marshal", "shelve"}


def imported(source: Source) -> Iterator[str]:
    """The top-level packages that a file imports."""
    for node in ast.walk(source.module):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def test_nothing_of_ours_pickles() -> None:
    assert [source.name for source in our_sources() if RUN_WHAT_THEY_READ & set(imported(source))] == []


@pytest.mark.parametrize(
    "text", ["import pickle\n", "def f():\n    from pickle import loads\n", "import json, shelve\n"]
)
def test_every_way_to_import_it_is_seen(text: str) -> None:
    assert RUN_WHAT_THEY_READ & set(imported(Source("x.py", text)))

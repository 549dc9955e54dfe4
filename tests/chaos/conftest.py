"""Everything in this folder ends, stops or cuts off real processes of a model of fake stages."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("chaos")

"""Fixtures and options that several test folders use; loaded by tests/conftest.py."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew instead of comparing")

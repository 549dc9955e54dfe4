"""A model of fake stages behind a real frontend process, driven by the official SDK."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from openai import OpenAI

from tests.support.fake_chain import fake_chain
from tests.support.model_processes import ModelProcesses, model_processes


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("api")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelProcesses]:
    """One model for all tests that neither break nor fill it."""
    with model_processes(fake_chain(), tmp_path_factory.mktemp("served")) as processes:
        asyncio.run(processes.start())
        yield processes


@pytest.fixture(scope="session")
def url(served: ModelProcesses) -> str:
    return served.urls[0]


@pytest.fixture(scope="session")
def openai(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield client

"""Models of fake stages behind real frontend processes, driven by the official SDK."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from openai import OpenAI

from omni_contract.api.v1alpha1 import FrontendLimits
from omni_contract.resolve import ResolvedModel
from tests.support.fake_chain import fake_chain
from tests.support.fake_omni import fake_omni, fake_speech
from tests.support.model_processes import ModelProcesses, model_processes


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("api")


@contextmanager
def started(
    model: ResolvedModel, folder: Path, frontends: int = 1, opened: Sequence[str] = ()
) -> Iterator[ModelProcesses]:
    """All of a model's processes; `opened` are arguments that its first frontend has beside its own."""
    with model_processes(model, folder, frontends) as processes:
        plan = processes.plans["frontend-0"]
        processes.plans["frontend-0"] = replace(plan, arguments=(*plan.arguments, *opened))
        asyncio.run(processes.start())
        yield processes


@contextmanager
def client_of(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelProcesses]:
    """One model for all tests that neither break nor fill it."""
    limits = FrontendLimits(max_body_bytes=1 << 20)
    with started(fake_chain(limits=limits), tmp_path_factory.mktemp("served")) as processes:
        yield processes


@pytest.fixture(scope="session")
def url(served: ModelProcesses) -> str:
    return served.urls[0]


@pytest.fixture(scope="session")
def openai(url: str) -> Iterator[OpenAI]:
    with client_of(url) as client:
        yield client


@pytest.fixture(scope="session")
def media_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the talking model's first frontend may read files from."""
    return tmp_path_factory.mktemp("media")


@pytest.fixture(scope="session")
def talking(tmp_path_factory: pytest.TempPathFactory, media_folder: Path) -> Iterator[ModelProcesses]:
    """A thinker, a talker and a vocoder, for all tests that neither break nor fill them. Media come to their first
    frontend from wherever a test has them, to their second one as they do by default."""
    opened = ("--media-allow-private-addresses", "--media-folder", str(media_folder), "--media-max-bytes", "100000")
    with started(fake_omni(), tmp_path_factory.mktemp("talking"), 2, opened) as processes:
        yield processes


@pytest.fixture(scope="session")
def talking_url(talking: ModelProcesses) -> str:
    return talking.urls[0]


@pytest.fixture(scope="session")
def talker(talking_url: str) -> Iterator[OpenAI]:
    with client_of(talking_url) as client:
        yield client


@pytest.fixture(scope="session")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelProcesses]:
    """A talker and a vocoder that read texts out, for all tests that neither break nor fill them."""
    with started(fake_speech(), tmp_path_factory.mktemp("reading")) as processes:
        yield processes


@pytest.fixture(scope="session")
def reading_url(reading: ModelProcesses) -> str:
    return reading.urls[0]


@pytest.fixture(scope="session")
def reader(reading_url: str) -> Iterator[OpenAI]:
    with client_of(reading_url) as client:
        yield client

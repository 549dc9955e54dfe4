"""One suite, every backend: the test process consumes, another process produces."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.store import PayloadStore
from tests.connectors.peer import LIMIT_BYTES, Peer

BACKENDS = ("inline", "grpc", "auto")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[name for name in BACKENDS if name != "inline"])
def large_backend(request: pytest.FixtureRequest) -> str:
    """Those that carry more than a control message does, and streams."""
    return str(request.param)


@pytest.fixture
async def peer(backend: str, tmp_path: Path) -> AsyncIterator[Peer]:
    async with Peer(backend, tmp_path) as producer:
        yield producer


@pytest.fixture
async def large_peer(large_backend: str, tmp_path: Path) -> AsyncIterator[Peer]:
    async with Peer(large_backend, tmp_path) as producer:
        yield producer


@pytest.fixture
async def consumer() -> AsyncIterator[ConnectorSet]:
    connectors = ConnectorSet("", "consumer", PayloadStore(LIMIT_BYTES))
    await connectors.open()
    yield connectors
    await connectors.close()

"""One suite, every backend: the test process consumes, another process produces."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.protocol import MemoryPlace
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.local.serve import free_port
from tests.connectors.backends import BACKENDS, MASTER, Backend
from tests.connectors.peer import LIMIT_BYTES, LOCALITY, Peer


@pytest.fixture(params=BACKENDS, ids=str)
def backend(request: pytest.FixtureRequest) -> Backend:
    assert isinstance(request.param, Backend)
    return prepare(request.param, request)


@pytest.fixture(params=[backend for backend in BACKENDS if not backend.is_inline], ids=str)
def large_backend(request: pytest.FixtureRequest) -> Backend:
    """Those that carry more than a control message does, and streams."""
    assert isinstance(request.param, Backend)
    return prepare(request.param, request)


def prepare(backend: Backend, request: pytest.FixtureRequest) -> Backend:
    if backend.needs_a_master:
        request.getfixturevalue("mooncake_master")
    return backend


@pytest.fixture(scope="session")
def mooncake_master() -> Iterator[None]:
    host, _, port = MASTER.rpartition(":")
    where = ("--host", host, "--port", port, "--admin-port", str(free_port(host, 0)))
    process = subprocess.Popen([sys.executable, "-m", "omni_runtime.connectors.mooncake.master", *where])
    yield
    process.terminate()
    process.wait(timeout=20)


@pytest.fixture
def memory() -> Iterator[MemoryPlace]:
    """A folder in memory of the test's own."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="omni-test-"))
    yield MemoryPlace(folder, LOCALITY)
    shutil.rmtree(folder)


@pytest.fixture
async def peer(backend: Backend, memory: MemoryPlace, tmp_path: Path) -> AsyncIterator[Peer]:
    async with Peer(backend, memory, tmp_path) as producer:
        yield producer


@pytest.fixture
async def large_peer(large_backend: Backend, memory: MemoryPlace, tmp_path: Path) -> AsyncIterator[Peer]:
    async with Peer(large_backend, memory, tmp_path) as producer:
        yield producer


@pytest.fixture
async def consumer(request: pytest.FixtureRequest, memory: MemoryPlace) -> AsyncIterator[ConnectorSet]:
    """With the settings of the backend that the test runs over."""
    over = [name for name in ("backend", "large_backend") if name in request.fixturenames]
    specs = request.getfixturevalue(over[0]).specs() if over else ()
    connectors = ConnectorSet("", "consumer", PayloadStore(LIMIT_BYTES), specs, memory=memory)
    await connectors.open()
    yield connectors
    await connectors.close()

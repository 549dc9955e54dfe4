"""A stage with an engine of the test's choice, ready to serve, without gRPC."""

from collections.abc import AsyncIterator, Callable
from socket import socket

import pytest

from omni_contract.wire.stage_file import StageFile
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.engines.protocol import Engine
from omni_runtime.worker.stage import Stage
from omni_runtime.worker.states import State
from tests.omni_runtime.worker.stage_files import stage_file

LIMIT_BYTES = 8 * 2**20


@pytest.fixture
async def make_stage() -> AsyncIterator[Callable[..., Stage]]:
    made: list[Stage] = []

    def make(engine: Engine, file: StageFile | None = None, state: State = State.READY) -> Stage:
        connectors = ConnectorSet("unix:nowhere", "boot-1", PayloadStore(LIMIT_BYTES))
        stage = Stage(file or stage_file(), engine, connectors)
        stage.become(state)
        made.append(stage)
        return stage

    yield make
    for stage in made:
        await stage.connectors.close()


@pytest.fixture
def free_port() -> int:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

"""A producer can tell a stream that nobody reads any more from one that has failed."""

from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from omni_contract.api.v1alpha1 import ConnectorSpec
from omni_contract.wire.errors import StreamDroppedError, TransferError
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.protocol import MemoryPlace
from omni_runtime.connectors.store import PayloadStore

LIMIT_BYTES = 100_000
SHM = ConnectorSpec.model_validate({"name": "shm", "shm": {"size": "1Mi"}})


@pytest.fixture
async def connectors() -> AsyncIterator[ConnectorSet]:
    with TemporaryDirectory(dir="/dev/shm", prefix="omni-test-") as folder:
        place = MemoryPlace(Path(folder), "here")
        made = ConnectorSet("unix:nowhere", "boot-1", PayloadStore(LIMIT_BYTES), (SHM,), ("shm",), place)
        await made.open()
        yield made
        await made.close()


@pytest.mark.parametrize("name", ["auto", "grpc", "shm"])
async def test_nothing_can_be_added_to_a_stream_that_its_consumer_has_released(
    connectors: ConnectorSet, name: str
) -> None:
    connector = connectors.connector(name)
    handle = await connector.open_stream("r-1", "a->b", 60)
    await connector.append(handle, {"item": 1})
    await connector.release(handle)
    for small in (True, False):
        with pytest.raises(StreamDroppedError, match="a->b"):
            await connector.append(handle, {"codes": b"x" if small else bytes(80_000)})
    with pytest.raises(StreamDroppedError):
        await connector.end_stream(handle)
    assert connectors.census().payloads == 0


@pytest.mark.parametrize("name", ["auto", "grpc"])
async def test_a_chunk_that_finds_no_room_is_a_failure_of_another_kind(connectors: ConnectorSet, name: str) -> None:
    connector = connectors.connector(name)
    handle = await connector.open_stream("r-1", "a->b", 60)
    with pytest.raises(TransferError, match="no room") as caught:
        await connector.append(handle, {"codes": bytes(LIMIT_BYTES + 1)})
    assert not isinstance(caught.value, StreamDroppedError)

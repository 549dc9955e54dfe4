"""A process's connector over Mooncake with fakes around it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol, cast

from omni_contract.api.v1alpha1 import ConnectorBlock
from omni_contract.wire.errors import TransferError
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.mooncake.memory import HostMemory
from omni_runtime.connectors.mooncake.pool import Pool
from omni_runtime.connectors.protocol import Connector, ConnectorContext, Production
from omni_runtime.connectors.store import PayloadStore

LONG_S = 20.0
BIG = {"data": bytes(range(256)) * 400}
OTHER = {"data": bytes(range(255, -1, -1)) * 400}


class Owner:
    """Stands for the gRPC connector: what it says when it is asked for a payload instead of Mooncake."""

    def __init__(self, store: PayloadStore) -> None:
        self.answer: Payload | None = None
        self.asked: list[str] = []
        self._store = store

    async def get(self, handle: Handle, remaining_s: float) -> Payload:
        self.asked.append(handle.key)
        if self.answer is None:
            raise TransferError(handle.edge, handle.request_id, "the owner says that it is gone")
        return self.answer

    async def release(self, handle: Handle) -> None:
        self._store.drop(handle.key)

    async def chunks(self, handle: Handle, remaining_s: float) -> AsyncIterator[Payload]:
        raise NotImplementedError
        yield {}


def context(settings: ConnectorBlock, production: Production = Production.REQUIRED) -> tuple[ConnectorContext, Owner]:
    store = PayloadStore(2**20)
    owner = Owner(store)
    siblings = {"grpc": cast(Connector, owner)}
    return ConnectorContext("moon", settings, "unix:worker.sock", "boot-1", store, siblings, production), owner


class HasConnector(Protocol):
    connector: Connector


async def put(world: HasConnector, payload: Payload = BIG) -> Handle:
    return await world.connector.put("r-1", "a->b", payload, LONG_S)


def host_pool(size_bytes: int) -> Pool:
    return Pool(HostMemory(size_bytes))


async def until(is_so: Callable[[], bool]) -> None:
    """For what threads do: they send the test no event."""
    async with asyncio.timeout(LONG_S):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.005)

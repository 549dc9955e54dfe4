"""All connectors of one process, by name."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import replace
from types import MappingProxyType

from omni_contract.api.v1alpha1 import PLAIN_CONNECTORS, ConnectorSpec
from omni_contract.resolve.connectors import PICKED_BY_AUTO
from omni_contract.wire.errors import TransferError
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.counters import ConnectorHealth, Watched
from omni_runtime.connectors.protocol import (
    ArenaCensus,
    ArenaOwner,
    Census,
    Connector,
    ConnectorContext,
    MemoryPlace,
    Production,
)
from omni_runtime.connectors.registry import CONNECTORS
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport

HERE = MemoryPlace()


class ConnectorSet:
    """Makes each connector once: the plain ones always, since `auto` may choose any, and those with settings."""

    def __init__(
        self,
        owner: str,
        boot_id: str,
        store: PayloadStore,
        with_settings: Iterable[ConnectorSpec] = (),
        outputs: Collection[str] = (),
        memory: MemoryPlace = HERE,
        transport: Transport = PLAIN,
    ) -> None:
        """`outputs` are the connectors of the edges that leave this process."""
        self._connectors: dict[str, Connector] = {}
        siblings = MappingProxyType(self._connectors)
        plain = ConnectorContext("", None, owner, boot_id, store, siblings, Production.REQUIRED, memory, transport)
        for kind in PLAIN_CONNECTORS:
            self._connectors[kind] = CONNECTORS.factory(kind)(replace(plain, name=kind))
        for spec in with_settings:
            production = _production(spec.name, outputs)
            context = replace(plain, name=spec.name, settings=spec.block, production=production)
            self._connectors[spec.name] = CONNECTORS.factory(spec.block.kind)(context)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._connectors))

    def connector(self, name: str) -> Connector:
        return self._connectors[name]

    def arenas(self) -> dict[str, ArenaCensus]:
        """The arenas of shared memory that this process owns, by connector."""
        owners = {name: one for name, one in self._connectors.items() if isinstance(one, ArenaOwner)}
        return {name: census for name, owner in owners.items() if (census := owner.arena_census()) is not None}

    def health(self) -> dict[str, ConnectorHealth]:
        """Of the connectors that tell it."""
        return {name: one.health() for name, one in self._connectors.items() if isinstance(one, Watched)}

    async def open(self) -> None:
        for connector in self._connectors.values():
            await connector.open()

    async def get(self, handle: Handle, remaining_s: float) -> Payload:
        return await self._of(handle).get(handle, remaining_s)

    def chunks(self, handle: Handle, remaining_s: float) -> AsyncIterator[Payload]:
        return self._of(handle).chunks(handle, remaining_s)

    async def release(self, handle: Handle) -> None:
        await self._of(handle).release(handle)

    def census(self) -> Census:
        parts = [connector.census() for connector in self._connectors.values()]
        return Census(sum(part.payloads for part in parts), sum(part.size_bytes for part in parts))

    async def wait_empty(self) -> None:
        await asyncio.gather(*(connector.wait_empty() for connector in self._connectors.values()))

    async def close(self) -> None:
        for connector in self._connectors.values():
            await connector.close()

    def _of(self, handle: Handle) -> Connector:
        name = handle.connector
        if (connector := self._connectors.get(name)) is None:
            own = ", ".join(self.names)
            text = f'connector "{name}" is not one of {own} that this process uses'
            raise TransferError(handle.edge, handle.request_id, text)
        return connector


def _production(name: str, outputs: Collection[str]) -> Production:
    if name in outputs:
        return Production.REQUIRED
    return Production.OPTIONAL if "auto" in outputs and name in PICKED_BY_AUTO else Production.NONE

"""All connectors of one process, by name."""

import asyncio
from collections.abc import Iterable

from omni_contract.api.v1alpha1 import PLAIN_CONNECTORS, ConnectorBlock, ConnectorSpec
from omni_contract.wire.errors import TransferError
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.protocol import Census, Connector, ConnectorContext
from omni_runtime.connectors.registry import CONNECTORS
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport


class ConnectorSet:
    """Makes each connector once: the plain ones always, since `auto` may choose any, and those with settings."""

    def __init__(
        self,
        owner: str,
        boot_id: str,
        store: PayloadStore,
        with_settings: Iterable[ConnectorSpec] = (),
        transport: Transport = PLAIN,
    ) -> None:
        def made(name: str, kind: str, settings: ConnectorBlock | None) -> Connector:
            return CONNECTORS.factory(kind)(
                ConnectorContext(name, settings, owner, boot_id, store, self.connector, transport)
            )

        self._connectors: dict[str, Connector] = {kind: made(kind, kind, None) for kind in PLAIN_CONNECTORS}
        for spec in with_settings:
            self._connectors[spec.name] = made(spec.name, spec.block.kind, spec.block)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._connectors))

    def connector(self, name: str) -> Connector:
        return self._connectors[name]

    async def open(self) -> None:
        for connector in self._connectors.values():
            await connector.open()

    async def get(self, handle: Handle, remaining_s: float) -> Payload:
        return await self._of(handle).get(handle, remaining_s)

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
        if handle.connector not in self._connectors:
            raise TransferError(
                handle.edge,
                handle.request_id,
                f'connector "{handle.connector}" is not one of {", ".join(self.names)} that this process uses',
            )
        return self._connectors[handle.connector]

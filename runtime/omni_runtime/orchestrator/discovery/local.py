"""Discovery without a cluster: the addresses are in the stage table and stay as they are."""

from collections.abc import AsyncIterator

from omni_contract.wire.stage_table import StageTable
from omni_runtime.orchestrator.discovery.protocol import Topology


class LocalDiscovery:
    def __init__(self, table: StageTable) -> None:
        self._table = table

    async def topologies(self) -> AsyncIterator[Topology]:
        yield Topology(self._table, {stage.name: frozenset(stage.addresses) for stage in self._table.stages})

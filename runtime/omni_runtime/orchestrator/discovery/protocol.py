"""How the orchestrator learns who is there: a stream of whole pictures, each replacing the one before."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from omni_contract.wire.stage_table import StageTable


@dataclass(frozen=True)
class Topology:
    """The stage table, and where the replicas of each stage listen. A stage without replicas may be absent."""

    table: StageTable
    addresses: Mapping[str, frozenset[str]]


class Discovery(Protocol):
    def topologies(self) -> AsyncIterator[Topology]:
        """Yields at once, then after each change; ends only if nothing can change any more."""
        ...

"""Who serves each stage now: follows discovery, keeps one link per worker, and tells the pools."""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial

from omni_contract.wire.stage_table import StageTable
from omni_runtime.orchestrator.connection import keep_attached
from omni_runtime.orchestrator.discovery.protocol import Discovery, Topology
from omni_runtime.orchestrator.graph import Plan, output_modalities, plan
from omni_runtime.orchestrator.link import Link
from omni_runtime.orchestrator.pool import StagePool, Viability
from omni_runtime.orchestrator.routing import ReplicaInfo, viable
from omni_runtime.orchestrator.settings import OrchestratorSettings

logger = logging.getLogger(__name__)


class Membership:
    """The pools of all stages, and whether requests may come."""

    def __init__(self, table: StageTable, discovery: Discovery, settings: OrchestratorSettings) -> None:
        self.table = table
        self.pools: dict[str, StagePool] = {
            stage.name: StagePool(stage.name, settings.choose) for stage in table.stages
        }
        self._seen: set[str] = set()
        self._ready = asyncio.Event()
        self._patience: asyncio.TimerHandle | None = None
        self._discovery = discovery
        self._settings = settings
        self._plans: dict[tuple[str, ...], Plan] = {}
        self._viable: dict[Plan, frozenset[str]] = {}

    async def run(self) -> None:
        """Follows the topology; every link ends with it."""
        try:
            async with asyncio.TaskGroup() as links:
                async for topology in self._discovery.topologies():
                    self._follow(topology, links)
        finally:
            self._lose_patience()

    def plan(self, modalities: tuple[str, ...]) -> Plan:
        if modalities not in self._plans:
            self._plans[modalities] = plan(self.table, modalities)
        return self._plans[modalities]

    def viability(self, of: Plan) -> Viability:
        return partial(self._is_viable, of)

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    async def wait_ready(self) -> None:
        await self._ready.wait()

    def can_serve(self, modality: str) -> bool:
        chain = self.plan((modality,))
        return all(
            any(self._is_viable(chain, replica.boot_id) for replica in self._routable()[stage.name])
            for stage in chain.stages
        )

    def away(self, modality: str) -> tuple[str, ...]:
        """Stages that the output needs and that have no replica for it."""
        routable = self._routable()
        return tuple(stage.name for stage in self.plan((modality,)).stages if not routable[stage.name])

    def link_changed(self, link: Link) -> None:
        pools = list(self.pools.values())
        for pool in pools:
            pool.look()
        self._viable.clear()
        if link.is_routable or link.is_asleep:
            self._seen.add(link.stage)
        if not self.is_ready:
            self._look_whether_ready()
        for pool in pools:
            pool.members_changed()

    def slot_freed(self, link: Link) -> None:
        self.pools[link.stage].pump()

    def _look_whether_ready(self) -> None:
        """A frontend that starts while a stage is away must not keep from clients what goes without that stage."""
        if self._seen.issuperset(stage.name for stage in self.table.stages):
            self._ready.set()
        serves_some = any(map(self.can_serve, output_modalities(self.table)))
        if self.is_ready or not serves_some:
            self._lose_patience()
        elif self._patience is None:
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(self._settings.partial_ready_s, self._ready.set)

    def _lose_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _is_viable(self, of: Plan, boot_id: str) -> bool:
        if of not in self._viable:
            self._viable[of] = viable(of, self._routable())
        return boot_id in self._viable[of]

    def _routable(self) -> Mapping[str, list[ReplicaInfo]]:
        return {
            name: [link.replica for link in pool.routable if link.replica is not None]
            for name, pool in self.pools.items()
        }

    def _follow(self, topology: Topology, links: asyncio.TaskGroup) -> None:
        if topology.table != self.table:
            logger.info("stage table changed to revision %s", topology.table.revision)
            self.table = topology.table
            self._plans.clear()
            self._viable.clear()
        for stage in self.table.stages:
            self._follow_stage(stage.name, topology.addresses.get(stage.name, frozenset()), links)
        for gone in set(self.pools).difference(stage.name for stage in self.table.stages):
            self._follow_stage(gone, frozenset(), links)

    def _follow_stage(self, stage: str, addresses: frozenset[str], links: asyncio.TaskGroup) -> None:
        pool = self.pools.setdefault(stage, StagePool(stage, self._settings.choose))
        for address in addresses.difference(pool.links):
            link = pool.links[address] = Link(stage, address, self._settings, self, pool.work)
            links.create_task(self._run_link(pool, link), name=f"link {stage} {address}")
        for address in set(pool.links).difference(addresses):
            pool.links.pop(address).retire()

    async def _run_link(self, pool: StagePool, link: Link) -> None:
        await keep_attached(link, self._settings)
        if pool.links.get(link.address) is link:
            del pool.links[link.address]

"""The masters of managed stores in local mode: a process each beside the stages, on addresses that only we know."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from omni_contract.resolve.masters import managed_stores, with_masters_at
from omni_contract.resolve.resolved import ResolvedModel
from omni_runtime.local.plan import LocalPlan, Place, ProcessPlan, local_plan

LOOPBACK = "127.0.0.1"
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 5


@dataclass(frozen=True)
class Master:
    """Where the master of a connector will listen."""

    connector: str
    port: int
    admin_port: int

    @property
    def process(self) -> ProcessPlan:
        where = ("--host", LOOPBACK, "--port", str(self.port), "--admin-port", str(self.admin_port))
        return ProcessPlan(
            name=f"{self.connector}-master",
            module="omni_runtime.connectors.mooncake.master",
            arguments=where,
            environment={},
            health=f"http://{LOOPBACK}:{self.admin_port}/health",
            start_timeout_s=START_TIMEOUT_S,
            stop_timeout_s=STOP_TIMEOUT_S,
        )


def with_masters(model: ResolvedModel, place: Place, free_port: Callable[[], int]) -> LocalPlan:
    """The plan of a model, with a master for each store that wants one; stages are told where it is."""
    masters = {name: Master(name, free_port(), free_port()) for name in managed_stores(model)}
    addresses = {name: f"{LOOPBACK}:{master.port}" for name, master in masters.items()}
    plan = local_plan(with_masters_at(model, addresses), place)
    return replace(plan, services=tuple(master.process for master in masters.values()))

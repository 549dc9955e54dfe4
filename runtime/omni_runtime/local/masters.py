"""The masters of managed stores in local mode: a process each beside the stages, on addresses that only we know."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from omni_contract.api.v1alpha1 import ConnectorSpec
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
    managed = [connector.name for connector in model.connectors if _is_managed(connector)]
    masters = {name: Master(name, free_port(), free_port()) for name in managed}
    told = tuple(_told(connector, masters.get(connector.name)) for connector in model.connectors)
    plan = local_plan(replace(model, connectors=told), place)
    return replace(plan, services=tuple(master.process for master in masters.values()))


def _is_managed(connector: ConnectorSpec) -> bool:
    return connector.mooncake_store is not None and connector.mooncake_store.managed


def _told(connector: ConnectorSpec, master: Master | None) -> ConnectorSpec:
    if master is None or connector.mooncake_store is None:
        return connector
    address = f"{LOOPBACK}:{master.port}"
    return connector.with_block(connector.mooncake_store.model_copy(update={"managed": False, "master": address}))

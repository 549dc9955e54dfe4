"""Managed stores in local mode: a master each, whose address the stages are told."""

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from omni_contract.api.v1alpha1 import ConnectorSpec
from omni_contract.wire.stage_file import StageFile
from omni_runtime.connectors.mooncake.master import command
from omni_runtime.local.masters import with_masters
from omni_runtime.local.plan import LocalPlan, Place
from tests.support.local_models import CPU_ONLY, example_model

DIRECTORY = Path("/run/user/1/omni/x")
MANAGED = ConnectorSpec.model_validate({"name": "store", "mooncakeStore": {"managed": True}})
FOREIGN = ConnectorSpec.model_validate({"name": "other", "mooncakeStore": {"master": "10.0.0.1:50051"}})


def planned(*connectors: ConnectorSpec) -> LocalPlan:
    model = example_model()
    edges = tuple(replace(edge, connector=connectors[0].name) for edge in model.edges) if connectors else model.edges
    ports = count(41_000)
    place = Place(
        directory=DIRECTORY,
        host="127.0.0.1",
        port=8000,
        machine=CPU_ONLY,
        volumes={"models": Path("/home/me/models")},
        created=7,
    )
    return with_masters(replace(model, edges=edges, connectors=connectors), place, lambda: next(ports))


def told(plan: LocalPlan, stage: str) -> dict[str, ConnectorSpec]:
    file = StageFile.model_validate_json(plan.files[DIRECTORY / f"{stage}.json"])
    return {connector.name: connector for connector in file.connectors}


def test_a_managed_store_gets_a_master_on_this_host_that_outlasts_its_stages() -> None:
    plan = planned(MANAGED)
    (master,) = plan.services
    assert master.name == "store-master"
    assert master.arguments == ("--host", "127.0.0.1", "--port", "41000", "--admin-port", "41001")
    assert master.health == "http://127.0.0.1:41001/health"
    assert plan.processes[0] is master


def test_the_stages_are_told_where_their_master_listens() -> None:
    block = told(planned(MANAGED), "denoiser")["store"].mooncake_store
    assert block is not None
    assert (block.managed, block.master) == (False, "127.0.0.1:41000")


@pytest.mark.parametrize("connectors", [(), (FOREIGN,)], ids=["no store", "a store with a master of its own"])
def test_without_a_managed_store_nothing_runs_beside_the_stages(connectors: tuple[ConnectorSpec, ...]) -> None:
    plan = planned(*connectors)
    assert plan.services == ()
    if connectors:
        assert told(plan, "denoiser")["other"] == FOREIGN


def test_a_master_listens_where_it_is_told_and_nowhere_else() -> None:
    words = command(Path("/lib/mooncake_master"), ["--host", "10.0.0.1", "--port", "7", "--admin-port", "8"])
    assert words[:9] == [
        "/lib/mooncake_master",
        *("--rpc_address", "10.0.0.1", "--rpc_port", "7"),
        *("--metrics_host", "10.0.0.1", "--metrics_port", "8"),
    ]

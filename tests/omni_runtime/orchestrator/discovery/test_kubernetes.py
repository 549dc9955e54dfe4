"""Discovery in a cluster, with the official client against an API server of the test's own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from kubernetes.aio import client

from omni_contract.wire.names import STAGE_TABLE_KEY, stage_table_config_map
from omni_contract.wire.stage_table import StageTable
from omni_runtime.orchestrator.discovery.kubernetes import KubernetesDiscovery
from omni_runtime.orchestrator.discovery.protocol import Topology
from tests.support.fake_api_server import FakeApiServer
from tests.support.stage_tables import chain

SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def in_cluster_table(*names: str, revision: str = "r1") -> StageTable:
    plain = chain(*names)
    stages = tuple(stage.model_copy(update={"service": f"painter-{stage.name}"}) for stage in plain.stages)
    return plain.model_copy(update={"stages": stages, "revision": revision})


TABLE = in_cluster_table("encoder", "decoder")


def endpoint(address: str, **conditions: bool) -> dict[str, Any]:
    return {"addresses": [address], "conditions": {"ready": True, "serving": True, **conditions}}


def endpoint_slice(stage: str, *endpoints: dict[str, Any], name: str = "", kind: str = "IPv4") -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": f"painter-{stage}"}
    return {
        "metadata": {"name": name or f"painter-{stage}-x", "labels": labels},
        "addressType": kind,
        "endpoints": list(endpoints),
        "ports": [{"port": 50051}],
    }


def config_map(table: StageTable) -> dict[str, Any]:
    data = {STAGE_TABLE_KEY: table.model_dump_json(by_alias=True)}
    return {"metadata": {"name": stage_table_config_map(table.model)}, "data": data}


class Followed:
    """Reads topologies until one has what the test waits for."""

    def __init__(self, topologies: AsyncIterator[Topology]) -> None:
        self._topologies = topologies

    async def addresses(self, **expected: set[str]) -> None:
        async with asyncio.timeout(10):
            async for topology in self._topologies:
                if {stage: set(found) for stage, found in topology.addresses.items()} == expected:
                    return

    async def revision(self, expected: str) -> Topology:
        async with asyncio.timeout(10):
            async for topology in self._topologies:
                if topology.table.revision == expected:
                    return topology
        raise AssertionError("discovery ended")


@asynccontextmanager
async def followed(server: FakeApiServer) -> AsyncIterator[Followed]:
    def connect() -> client.ApiClient:
        return client.ApiClient(client.Configuration(host=server.url))

    async with server.running(), aclosing(KubernetesDiscovery(TABLE, connect).topologies()) as topologies:
        yield Followed(topologies)


async def test_replicas_come_and_go_with_their_endpoints() -> None:
    server = FakeApiServer()
    server.put(SLICES, endpoint_slice("encoder", endpoint("10.0.0.1")))
    async with followed(server) as now:
        await now.addresses(encoder={"10.0.0.1:50051"}, decoder=set())
        server.put(SLICES, endpoint_slice("decoder", endpoint("10.0.0.2"), endpoint("10.0.0.3")))
        await now.addresses(encoder={"10.0.0.1:50051"}, decoder={"10.0.0.2:50051", "10.0.0.3:50051"})
        server.delete(SLICES, "painter-encoder-x")
        await now.addresses(encoder=set(), decoder={"10.0.0.2:50051", "10.0.0.3:50051"})


@pytest.mark.parametrize(
    ("conditions", "takes_work"),
    [
        ({}, True),
        ({"serving": False}, False),
        ({"terminating": True}, False),
        ({"ready": False, "serving": True, "terminating": True}, False),
        ({"ready": False, "serving": True}, True),
        ({"ready": False, "serving": None}, False),
        ({"ready": None, "serving": None}, True),
    ],
)
async def test_only_what_serves_and_does_not_terminate_takes_work(conditions: Any, takes_work: bool) -> None:
    server = FakeApiServer()
    server.put(SLICES, endpoint_slice("encoder", endpoint("10.0.0.1", **conditions), endpoint("10.0.0.9")))
    expected = {"10.0.0.9:50051"} | ({"10.0.0.1:50051"} if takes_work else set())
    async with followed(server) as now:
        await now.addresses(encoder=expected, decoder=set())


async def test_a_stage_may_have_several_slices_and_ipv6_addresses() -> None:
    server = FakeApiServer()
    server.put(SLICES, endpoint_slice("encoder", endpoint("10.0.0.1"), name="one"))
    server.put(SLICES, endpoint_slice("encoder", endpoint("fd00::1"), name="two", kind="IPv6"))
    async with followed(server) as now:
        await now.addresses(encoder={"10.0.0.1:50051", "[fd00::1]:50051"}, decoder=set())


async def test_a_changed_stage_table_is_followed_and_a_broken_one_is_not() -> None:
    server = FakeApiServer()
    server.put(CONFIG_MAPS, config_map(in_cluster_table("encoder", "decoder", revision="r2")))
    async with followed(server) as now:
        await now.revision("r2")
        broken = config_map(TABLE)
        broken["data"] = {STAGE_TABLE_KEY: "{"}
        server.put(CONFIG_MAPS, broken)
        server.put(CONFIG_MAPS, config_map(in_cluster_table("encoder", "decoder", revision="r3")))
        await now.revision("r3")


async def test_a_new_stage_s_service_is_asked_for() -> None:
    server = FakeApiServer()
    server.put(SLICES, endpoint_slice("upscaler", endpoint("10.0.0.7")))
    async with followed(server) as now:
        await now.addresses(encoder=set(), decoder=set())
        server.put(CONFIG_MAPS, config_map(in_cluster_table("encoder", "decoder", "upscaler", revision="r2")))
        await now.addresses(encoder=set(), decoder=set(), upscaler={"10.0.0.7:50051"})
    selectors = [query["labelSelector"] for path, query in server.lists if path == SLICES]
    assert selectors[0] == "kubernetes.io/service-name in (painter-decoder,painter-encoder)"
    assert selectors[-1] == "kubernetes.io/service-name in (painter-decoder,painter-encoder,painter-upscaler)"


async def test_only_the_model_s_own_config_map_is_asked_for() -> None:
    server = FakeApiServer()
    async with followed(server) as now:
        await now.addresses(encoder=set(), decoder=set())
    assert (CONFIG_MAPS, {"fieldSelector": "metadata.name=painter-stage-table"}) in server.lists


GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}


@pytest.mark.parametrize("error", [None, GONE])
async def test_what_was_deleted_while_no_watch_was_open_is_gone_after_it(error: dict[str, Any] | None) -> None:
    server = FakeApiServer()
    server.put(SLICES, endpoint_slice("encoder", endpoint("10.0.0.1")))
    async with followed(server) as now:
        await now.addresses(encoder={"10.0.0.1:50051"}, decoder=set())
        server.end_watches(error)
        server.delete(SLICES, "painter-encoder-x")
        await now.addresses(encoder=set(), decoder=set())


async def test_while_the_api_server_is_away_the_last_picture_stays() -> None:
    server = FakeApiServer()
    server.put(SLICES, endpoint_slice("encoder", endpoint("10.0.0.1")))
    async with followed(server) as now:
        await now.addresses(encoder={"10.0.0.1:50051"}, decoder=set())
        server.is_away = True
        server.end_watches()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(now.addresses(encoder=set(), decoder=set()), 0.5)

"""Discovery without a cluster."""

from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from tests.support.stage_tables import chain


async def test_the_table_s_addresses_are_all_there_is() -> None:
    table = chain("encoder", "decoder", addresses={"encoder": ("unix:/a", "unix:/b")})
    found = [topology async for topology in LocalDiscovery(table).topologies()]
    assert [dict(topology.addresses) for topology in found] == [
        {"encoder": frozenset({"unix:/a", "unix:/b"}), "decoder": frozenset()}
    ]

"""No two stages of a model are given the same port, and none is given one that others use."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from omni_contract.api.v1alpha1 import ConnectorSpec, ShmConnector
from omni_contract.api.v1alpha1.mooncake import (
    LAST_PORT,
    MAX_STAGES,
    PORTS_PER_STAGE,
    MooncakeTransferEngineConnector,
)
from omni_contract.resolve.ports import first_port, with_ports_of

MASTER_PORT = 50_051
"""On which mooncake_master listens unless told otherwise."""
LAST_BASE = LAST_PORT - MAX_STAGES * PORTS_PER_STAGE + 1


@pytest.mark.case("runtime:K7", "runtime:K11")
@given(st.integers(1024, LAST_BASE))
def test_the_ranges_of_all_stages_are_apart_and_below_those_that_others_use(base: int):
    ranges = [range(first := first_port(base, index), first + PORTS_PER_STAGE) for index in range(MAX_STAGES)]
    assert all(one.stop <= next_one.start for one, next_one in pairwise(ranges))
    assert ranges[-1].stop - 1 <= LAST_PORT < MASTER_PORT


def test_a_base_whose_last_stage_would_leave_the_range_is_refused():
    with pytest.raises(ValidationError, match="less than or equal to 30720"):
        MooncakeTransferEngineConnector(first_port=LAST_BASE + 1)


def test_each_stage_is_told_its_own_ports():
    connector = ConnectorSpec(name="fast", mooncake_transfer_engine=MooncakeTransferEngineConnector(first_port=20_000))
    third = with_ports_of(connector, 2)
    assert third.mooncake_transfer_engine == MooncakeTransferEngineConnector(first_port=20_256)


@pytest.mark.parametrize(
    "connector",
    [
        ConnectorSpec(name="fast", mooncake_transfer_engine=MooncakeTransferEngineConnector()),
        ConnectorSpec(name="shm", shm=ShmConnector()),
    ],
    ids=["no first port", "no ports"],
)
def test_a_connector_without_ports_is_the_same_in_every_stage(connector: ConnectorSpec):
    assert with_ports_of(connector, 3) is connector

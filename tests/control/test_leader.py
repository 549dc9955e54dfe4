"""Two operators, of which one acts."""

from typing import Any

import pytest

from tests.control.conftest import MakeOperator
from tests.support.helm import NAMESPACE, RELEASE
from tests.support.operator_models import a_spec
from tests.support.operator_world import World
from tests.support.operators import Operator
from tests.support.waiting import eventually

pytestmark = pytest.mark.control

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{RELEASE}"


def holder(world: World) -> str:
    name: str = world.plane.rest.get(LEASE)["spec"].get("holderIdentity", "")
    return name


def leads(operator: Operator) -> bool:
    return f"{operator.identity} leads" in operator.log


SHORT_LEASE = {"name": RELEASE, "durationSeconds": 15, "renewDeadlineSeconds": 10}
LONG_LEASE = {"name": RELEASE, "durationSeconds": 600, "renewDeadlineSeconds": 500}


@pytest.fixture
def lease() -> dict[str, Any]:
    return SHORT_LEASE


@pytest.fixture
def pair(make_operator: MakeOperator, lease: dict[str, Any]) -> tuple[Operator, Operator]:
    """The first leads, the second waits."""
    first, second = make_operator("first", lease=lease), make_operator("second", lease=lease)
    first.start()
    eventually("the first leads", lambda: leads(first))
    second.start()
    eventually("the second is ready to lead", lambda: "waits" in second.log)
    return first, second


def test_only_one_of_two_acts(a_world: World, pair: tuple[Operator, Operator]) -> None:
    a_world.create("toy", a_spec())
    a_world.wait_ready("toy")
    assert holder(a_world) == "first"
    assert not leads(pair[1])


@pytest.mark.parametrize("lease", [LONG_LEASE])
def test_a_leader_that_is_asked_to_end_gives_the_lease_back(a_world: World, pair: tuple[Operator, Operator]) -> None:
    first, second = pair
    first.stop()
    eventually("the second leads long before the lease runs out", lambda: leads(second))
    a_world.create("toy", a_spec())
    a_world.wait_ready("toy")


@pytest.mark.case("operator:M05")
def test_a_leader_that_freezes_is_replaced_and_does_not_come_back(
    a_world: World, pair: tuple[Operator, Operator]
) -> None:
    first, second = pair
    first.freeze()
    eventually("the second leads", lambda: leads(second))
    first.thaw()
    eventually("the first has ended", lambda: not first.process.is_running)
    assert "is lost" in first.log
    assert holder(a_world) == "second"


def test_a_leader_that_is_killed_is_replaced(a_world: World, pair: tuple[Operator, Operator]) -> None:
    first, second = pair
    first.kill()
    eventually("the second leads", lambda: leads(second))
    a_world.create("toy", a_spec())
    a_world.wait_ready("toy")

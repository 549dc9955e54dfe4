"""An API server that is away, slow to accept, or that forgets versions; and a storm of events."""

import time

import pytest

from tests.control.conftest import MakeOperator
from tests.support.fault_proxy import Answer, Call, FaultProxy
from tests.support.operator_models import a_spec, a_stage
from tests.support.operator_world import World
from tests.support.operators import Installation, Operator
from tests.support.waiting import eventually

pytestmark = pytest.mark.control


@pytest.fixture
def toy(a_world: World, proxied_operator: Operator) -> World:
    a_world.create("toy", a_spec(a_stage("denoiser")))
    a_world.wait_ready("toy")
    return a_world


@pytest.mark.case("operator:M08")
def test_writes_that_are_throttled_come_later(a_world: World, proxy: FaultProxy, proxied_operator: Operator) -> None:
    refused: list[Call] = []

    def throttle(call: Call) -> Answer | None:
        if call.is_write and len(refused) < 5:
            refused.append(call)
            return Answer(429, "too many requests", {"Retry-After": "1"})
        return None

    proxy.fault = throttle
    a_world.create("toy", a_spec(a_stage("denoiser")))
    a_world.wait_ready("toy")
    assert len(refused) == 5


@pytest.mark.case("operator:A13")
@pytest.mark.parametrize("status", [500, 503, 504])
def test_an_unhappy_server_is_asked_again(
    a_world: World, proxy: FaultProxy, proxied_operator: Operator, status: int
) -> None:
    a_world.create("early", a_spec(a_stage("denoiser")))
    a_world.wait_ready("early")
    proxy.fault = lambda call: Answer(status, "not now") if call.is_write else None
    a_world.create("toy", a_spec(a_stage("denoiser")))
    eventually("the operator has tried", lambda: sum(call.is_write and "toy" in call.path for call in proxy.calls) >= 2)
    proxy.fault = lambda call: None
    a_world.wait_ready("toy")


@pytest.mark.case("operator:M01")
@pytest.mark.case("operator:M02")
@pytest.mark.case("operator:M15")
def test_children_deleted_while_the_api_server_was_away_for_the_operator_come_back(
    toy: World, proxy: FaultProxy, proxied_operator: Operator
) -> None:
    pods, refused = toy.pod_ages("toy"), list[Call]()

    def away(call: Call) -> Answer:
        refused.append(call)
        return Answer(503, "the server is away")

    proxy.fault = away
    proxy.cut_streams()
    eventually("the operator notices", lambda: len(refused) > 10)
    toy.delete_child("services", "toy-denoiser")
    toy.delete_child("configmaps", "toy-stage-table")
    proxy.fault = lambda call: None
    eventually("the Service is back", lambda: "toy-denoiser" in toy.children("services", "toy"))
    eventually("the table is back", lambda: "toy-stage-table" in toy.children("configmaps", "toy"))
    assert proxied_operator.process.is_running
    assert toy.pod_ages("toy") == pods


@pytest.mark.case("operator:M01")
def test_versions_that_the_server_forgot_are_listed_anew(
    toy: World, proxy: FaultProxy, proxied_operator: Operator
) -> None:
    forgotten: list[Call] = []

    def forget(call: Call) -> Answer | None:
        if call.is_watch and len(forgotten) < 12:
            forgotten.append(call)
            return Answer(410, "too old resource version")
        return None

    proxy.fault = forget
    proxy.cut_streams()
    eventually("every stream is refused once", lambda: len(forgotten) == 12)
    toy.delete_child("services", "toy-denoiser")
    eventually("the Service is back", lambda: "toy-denoiser" in toy.children("services", "toy"))
    toy.wait_ready("toy")


@pytest.mark.case("operator:M15")
def test_an_api_server_that_is_killed_and_comes_back_finds_the_operator_at_work(
    a_world: World, make_operator: MakeOperator, installation: Installation
) -> None:
    operator = make_operator(
        lease={"name": "omni-operator", "durationSeconds": 150, "renewDeadlineSeconds": 120}
    ).start()
    a_world.create("toy", a_spec(a_stage("denoiser")))
    a_world.wait_ready("toy")
    installation.plane.kill_apiserver()
    time.sleep(3)
    installation.plane.restart_apiserver()
    a_world.create("after", a_spec(a_stage("denoiser")))
    a_world.wait_ready("after", patience_s=120)
    assert operator.process.is_running


@pytest.mark.case("operator:A03")
@pytest.mark.case("operator:B10")
def test_a_storm_of_edits_and_events_makes_few_writes(toy: World, proxy: FaultProxy) -> None:
    before = len(proxy.writes())
    for number in range(50):
        toy.edit("toy", lambda model, number=number: model["spec"]["stages"][0].update(replicas=1 + number % 3))  # type: ignore[misc]
    toy.edit("toy", lambda model: model["spec"]["stages"][0].update(replicas=2))
    toy.wait_ready("toy")
    assert len(toy.pod_ages("toy")["denoiser"]) == 2
    assert len(toy.children("controllerrevisions", "toy")) == 1
    assert len(proxy.writes()) - before < 200

"""The master of a managed store against a real API server: made, watched, removed when nobody may need it any more."""

import pytest

from tests.support.kubelet import not_ready, set_status, waiting
from tests.support.operator_models import a_spec, a_stage
from tests.support.operator_world import Object, World
from tests.support.operators import Operator
from tests.support.waiting import eventually

pytestmark = pytest.mark.control

MASTER = "toy-connector-store-master"


def with_store() -> Object:
    spec = a_spec(a_stage("encoder"), a_stage("denoiser"))
    connectors = [{"name": "store", "mooncakeStore": {"managed": True, "segmentSize": "64Mi"}}]
    return {**spec, "edges": [{**edge, "connector": "store"} for edge in spec["edges"]], "connectors": connectors}


@pytest.fixture
def toy(a_world: World, operator: Operator) -> World:
    """A restricted world in which the model "toy", whose edge takes a managed store, is Ready."""
    path = f"/api/v1/namespaces/{a_world.namespace}"
    namespace = a_world.plane.rest.get(path)
    namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    a_world.plane.rest.call("PUT", path, namespace)
    a_world.create("toy", with_store())
    a_world.wait_ready("toy")
    return a_world


def test_a_model_with_a_managed_store_has_a_master_of_its_own(toy: World) -> None:
    assert toy.condition("toy", "ConnectorsReady") == "True"
    assert MASTER in toy.children("deployments", "toy")
    assert MASTER in toy.children("services", "toy")
    assert toy.model("toy")["status"]["stagesReady"] == "2/2"


def test_a_master_that_is_away_is_told_and_no_stage_restarts(toy: World) -> None:
    before = toy.pod_ages("toy")
    master = next(pod for name, pod in toy.pods("toy").items() if name.startswith(MASTER))
    crashed = {"terminated": {"exitCode": 2, "reason": "Error", "message": "ERROR port 50051 is taken"}}
    crashing = waiting("CrashLoopBackOff", lastState=crashed)
    set_status(toy, master, conditions=not_ready(master["status"]), containerStatuses=[crashing])
    eventually("ConnectorsReady says so", lambda: toy.condition("toy", "ConnectorsReady") == "False")
    said = next(one for one in toy.model("toy")["status"]["conditions"] if one["type"] == "ConnectorsReady")
    assert "ERROR port 50051 is taken" in said["message"]
    assert toy.condition("toy", "StagesReady") == "True"
    assert toy.condition("toy", "Ready") == "False"
    set_status(toy, master, **{key: master["status"][key] for key in ("conditions", "containerStatuses")})
    toy.wait_ready("toy")
    assert toy.pod_ages("toy") == before


def test_a_store_that_is_no_longer_used_leaves_nothing(toy: World) -> None:
    toy.edit("toy", lambda model: model["spec"].update(a_spec(a_stage("encoder"), a_stage("denoiser")), connectors=[]))
    eventually("the master is gone", lambda: not any(MASTER in child for child in toy.all_children("toy")))
    toy.wait_ready("toy")
    assert toy.condition("toy", "ConnectorsReady") == "True"

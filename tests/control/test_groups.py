"""Stages that share pods, against a real API server: one pod with one device, what restarts, and how they part."""

import pytest

from tests.support.operator_models import a_spec, a_stage
from tests.support.operator_world import Object, World
from tests.support.operators import Operator

pytestmark = pytest.mark.control

GROUP = "colocation-with-denoiser"
HALF = {"accelerator": {"pool": "h200", "devices": [0], "memoryFraction": 0.5}, "resources": {"memory": "1Gi"}}
TOGETHER = {"colocate": [["denoiser", "decoder"]]}


def three_stages(**placement: object) -> Object:
    stages = [a_stage("encoder"), a_stage("denoiser", **HALF), a_stage("decoder", **HALF)]
    return a_spec(*stages, placement=placement)


@pytest.fixture
def toy(a_world: World, operator: Operator) -> World:
    """A restricted world in which the model "toy" is Ready, with two stages in one pod on one GPU."""
    path = f"/api/v1/namespaces/{a_world.namespace}"
    namespace = a_world.plane.rest.get(path)
    namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    a_world.plane.rest.call("PUT", path, namespace)
    a_world.create("toy", three_stages(**TOGETHER))
    a_world.wait_ready("toy")
    return a_world


def test_stages_of_a_group_share_a_pod_and_a_device_and_are_told_one_by_one(toy: World) -> None:
    assert set(toy.pod_ages("toy")) == {"encoder", GROUP, "frontend"}
    (pod,) = (pod for name, pod in toy.pods("toy").items() if GROUP in name)
    assert pod["spec"]["nodeName"].startswith("fake-nvidia-")
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    status = toy.model("toy")["status"]
    assert status["stagesReady"] == "3/3"
    assert [row["name"] for row in status["stages"]] == ["encoder", "denoiser", "decoder"]


@pytest.mark.case("operator:C16")
def test_an_edit_of_one_stage_restarts_its_group_and_no_other(toy: World) -> None:
    before = toy.pod_ages("toy")
    toy.edit("toy", lambda model: model["spec"]["stages"][2].update(maxBatchSize=4))
    toy.wait_ready("toy")
    after = toy.pod_ages("toy")
    assert {name for name in before if before[name] != after[name]} == {GROUP}


@pytest.mark.case("operator:G10")
def test_stages_may_part_and_leave_nothing_of_their_group(toy: World) -> None:
    before = toy.pod_ages("toy")

    def part(model: Object) -> None:
        model["spec"] = a_spec(a_stage("encoder"), a_stage("denoiser", "h200"), a_stage("decoder", "h200"))

    toy.edit("toy", part)
    toy.wait_ready("toy")
    assert set(toy.pod_ages("toy")) == {"encoder", "denoiser", "decoder", "frontend"}
    assert toy.pod_ages("toy")["encoder"] == before["encoder"]
    assert not [child for child in toy.all_children("toy") if GROUP in child]

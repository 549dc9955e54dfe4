"""Stages whose replicas others decide, against a real API server and the real autoscaler's controller."""

from typing import Any

import pytest

from tests.control.test_life import denoiser_with, settled
from tests.support.operator_models import a_spec, a_stage
from tests.support.operator_world import APPS, World
from tests.support.operators import Operator
from tests.support.waiting import eventually

pytestmark = pytest.mark.control

BY_CPU = {"minReplicas": 2, "maxReplicas": 6, "cpuUtilization": 70}
CPU = {"resources": {"cpu": "100m"}}


def a_toy(world: World, **denoiser: Any) -> None:
    world.create("toy", a_spec(a_stage("encoder"), a_stage("denoiser", **CPU, **denoiser), a_stage("decoder")))
    world.wait_ready("toy")


def scale(world: World, replicas: int) -> None:
    """As `kubectl scale` and autoscalers do it."""
    path = f"{APPS.format(namespace=world.namespace)}/deployments/toy-denoiser/scale"
    live = world.plane.rest.get(path)
    world.plane.rest.call("PUT", path, {**live, "spec": {"replicas": replicas}})


def replicas(world: World) -> int:
    found: int = world.children("deployments", "toy")["toy-denoiser"]["spec"]["replicas"]
    return found


def scaling(world: World) -> tuple[str, str]:
    found = next(one for one in world.model("toy")["status"]["conditions"] if one["type"] == "ScalingActive")
    return found["reason"], found["message"]


def autoscaling(**fields: Any) -> Any:
    """An edit from a fixed number of replicas."""

    def change(model: Any) -> None:
        model["spec"]["stages"][1].pop("replicas")
        model["spec"]["stages"][1]["autoscaling"] = fields

    return change


def fixed(replicas: int) -> Any:
    """The edit back."""

    def change(model: Any) -> None:
        model["spec"]["stages"][1].pop("autoscaling")
        model["spec"]["stages"][1]["replicas"] = replicas

    return change


def test_an_autoscaler_without_metrics_is_told_in_its_own_words(a_world: World, operator: Operator) -> None:
    a_toy(a_world, autoscaling=BY_CPU)
    assert replicas(a_world) == 2
    assert "toy-denoiser" in a_world.children("horizontalpodautoscalers", "toy")
    eventually("its words are told", lambda: "denoiser: FailedGet" in scaling(a_world)[1])
    assert scaling(a_world)[0] == "NotScaling"
    assert a_world.condition("toy", "Ready") == "True"


@pytest.mark.case("operator:B01", "operator:B04", "operator:B05")
def test_who_scales_a_stage_is_not_overruled_by_edits(a_world: World, operator: Operator) -> None:
    a_toy(a_world, autoscaling={"minReplicas": 1, "maxReplicas": 6})
    scale(a_world, 4)
    eventually("the model has them", lambda: len(settled(a_world)["denoiser"]) == 4)
    a_world.edit("toy", denoiser_with(maxBatchSize=4))
    assert len(settled(a_world)["denoiser"]) == replicas(a_world) == 4
    assert scaling(a_world)[0] == "LeftToOthers"


@pytest.mark.case("operator:B01")
def test_a_running_stage_is_handed_to_an_autoscaler_without_losing_a_replica(
    a_world: World, operator: Operator
) -> None:
    a_toy(a_world, replicas=4)
    before = a_world.pod_ages("toy")
    a_world.edit("toy", autoscaling(**BY_CPU))
    eventually("there is an autoscaler", lambda: a_world.children("horizontalpodautoscalers", "toy"))
    assert settled(a_world) == before

    a_world.edit("toy", fixed(3))
    eventually("it is gone", lambda: not a_world.children("horizontalpodautoscalers", "toy"))
    after = settled(a_world)
    assert len(after["denoiser"]) == 3
    assert after["denoiser"] < before["denoiser"]

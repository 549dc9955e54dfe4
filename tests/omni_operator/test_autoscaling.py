"""Stages whose replicas the load decides: whose number it is, and that it never jumps."""

from typing import Any

import pytest

from omni_operator.errors import Conflict
from omni_operator.objects import AUTOSCALER, DEPLOYMENT, Manifest
from tests.omni_operator.test_reconcile import KEY, Cluster, cluster, spec_with
from tests.support.operator_models import a_spec

__all__ = ["cluster"]

BOUNDS = {"minReplicas": 2, "maxReplicas": 8}
BY_CPU = {**BOUNDS, "cpuUtilization": 70}
CPU = {"resources": {"cpu": "2"}}


def denoiser(cluster: Cluster) -> Manifest:
    return cluster.kube.object(DEPLOYMENT, "toy-denoiser")


def replicas(cluster: Cluster) -> int:
    found: int = denoiser(cluster)["spec"]["replicas"]
    return found


def scale(cluster: Cluster, to: int) -> None:
    """As an autoscaler or `kubectl scale` does it."""
    live = denoiser(cluster)
    cluster.kube.put({**live, "spec": {**live["spec"], "replicas": to}})


async def begun(cluster: Cluster, **stage: Any) -> None:
    cluster.edit(spec_with(**stage))
    await cluster.settle()


async def test_it_begins_with_the_fewest_replicas_under_an_autoscaler_of_its_bounds(cluster: Cluster) -> None:
    await begun(cluster, autoscaling=BY_CPU, **CPU)
    assert replicas(cluster) == 2
    spec = cluster.kube.object(AUTOSCALER, "toy-denoiser")["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "toy-denoiser"}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 8)
    [metric] = spec["metrics"]
    assert metric["resource"] == {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}


async def test_a_target_of_the_pods_own_metrics_is_handed_on(cluster: Cluster) -> None:
    metric = {"name": "omni_worker_running", "averageValue": 4}
    await begun(cluster, autoscaling={**BOUNDS, "podMetrics": [metric]})
    [made] = cluster.kube.object(AUTOSCALER, "toy-denoiser")["spec"]["metrics"]
    assert made["pods"] == {
        "metric": {"name": "omni_worker_running"},
        "target": {"type": "AverageValue", "averageValue": "4"},
    }


async def test_without_a_target_others_scale_it_and_there_is_no_autoscaler(cluster: Cluster) -> None:
    await begun(cluster, autoscaling=BOUNDS)
    assert cluster.kube.objects(AUTOSCALER) == {}
    scale(cluster, 5)
    await cluster.settle()
    assert replicas(cluster) == 5


@pytest.mark.case("operator:B01", "operator:B05")
async def test_what_an_autoscaler_said_outlives_every_edit(cluster: Cluster) -> None:
    await begun(cluster, autoscaling=BY_CPU, **CPU)
    scale(cluster, 7)
    for batch in (4, 8):
        cluster.edit(spec_with(autoscaling=BY_CPU, maxBatchSize=batch, **CPU))
        await cluster.settle()
        assert replicas(cluster) == 7
    assert cluster.status()["phase"] == "Ready"
    assert next(row for row in cluster.status()["stages"] if row["name"] == "denoiser")["desired"] == 7


@pytest.mark.case("operator:B01")
async def test_a_running_stage_that_becomes_autoscaled_keeps_its_replicas(cluster: Cluster) -> None:
    await begun(cluster, replicas=6)
    cluster.edit(spec_with(autoscaling=BY_CPU, **CPU))
    await cluster.settle()
    assert replicas(cluster) == 6


async def test_a_number_that_changes_while_it_is_handed_over_is_looked_at_again(cluster: Cluster) -> None:
    await begun(cluster, replicas=6)
    cluster.edit(spec_with(autoscaling=BOUNDS))
    cluster.kube.lags = True
    scale(cluster, 3)
    with pytest.raises(Conflict):
        await cluster.reconcile()
    cluster.kube.lags = False
    cluster.kube.deliver()
    await cluster.settle()
    assert replicas(cluster) == 3


async def test_a_stage_that_is_no_longer_autoscaled_gets_what_the_model_says(cluster: Cluster) -> None:
    await begun(cluster, autoscaling=BY_CPU, **CPU)
    scale(cluster, 7)
    cluster.edit(spec_with(replicas=3, **CPU))
    await cluster.settle()
    assert replicas(cluster) == 3
    assert cluster.kube.objects(AUTOSCALER) == {}


@pytest.mark.case("operator:B11")
async def test_bounds_restart_nothing(cluster: Cluster) -> None:
    await begun(cluster, autoscaling=BY_CPU, **CPU)
    before = denoiser(cluster)["spec"]["template"]
    cluster.edit(spec_with(autoscaling={**BY_CPU, "maxReplicas": 3}, **CPU))
    await cluster.settle()
    assert denoiser(cluster)["spec"]["template"] == before
    assert cluster.kube.object(AUTOSCALER, "toy-denoiser")["spec"]["maxReplicas"] == 3


async def test_suspending_takes_its_replicas_away_and_resuming_begins_with_the_fewest(cluster: Cluster) -> None:
    await begun(cluster, autoscaling=BOUNDS)
    scale(cluster, 5)
    cluster.edit({**spec_with(autoscaling=BOUNDS), "suspend": True})
    await cluster.settle()
    assert replicas(cluster) == 0
    cluster.edit(spec_with(autoscaling=BOUNDS))
    await cluster.settle()
    assert replicas(cluster) == 2


async def test_the_frontend_can_be_autoscaled_too(cluster: Cluster) -> None:
    cluster.edit(a_spec(frontend={"autoscaling": BY_CPU}))
    await cluster.settle()
    assert cluster.kube.object(DEPLOYMENT, "toy-frontend")["spec"]["replicas"] == 2
    assert "toy-frontend" in cluster.kube.objects(AUTOSCALER)


async def test_a_settled_model_with_autoscalers_is_never_written_again(cluster: Cluster) -> None:
    await begun(cluster, autoscaling=BY_CPU, **CPU)
    scale(cluster, 7)
    await cluster.settle()
    before = len(cluster.kube.writes())
    await cluster.reconcile(KEY)
    assert len(cluster.kube.writes()) == before

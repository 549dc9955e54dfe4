"""Stages that share a pod: one Deployment and one container for all, a Service and a worker for each."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from omni_contract.wire.group_file import GroupFile
from omni_operator.build.children import replicas_of
from omni_operator.objects import Manifest
from omni_operator.plan.observe import Owner
from tests.support.operator_models import a_model, a_spec, a_stage, child, children_of, resolved

POD = "toy-colocation-with-denoiser"
HALF = {"pool": "h200", "devices": [0], "memoryFraction": 0.5}


def together(*stages: dict[str, Any], **fields: Any) -> Manifest:
    """The last two of three stages share pods."""
    chain = stages or (a_stage("encoder"), a_stage("denoiser"), a_stage("decoder"))
    names = [stage["name"] for stage in chain]
    return a_model(a_spec(*chain, placement={"colocate": [names[-2:]]}, **fields))


def pod_of(children: list[Manifest]) -> Manifest:
    pod: Manifest = child(children, "Deployment", POD)["spec"]["template"]["spec"]
    return pod


def files_of(children: list[Manifest]) -> dict[str, str]:
    name = next(one["configMap"]["name"] for one in pod_of(children)["volumes"] if one["name"] == "stage-files")
    data: dict[str, str] = child(children, "ConfigMap", name)["data"]
    return data


def group_file(children: list[Manifest]) -> GroupFile:
    return GroupFile.model_validate_json(files_of(children)["group.json"])


def volume(pod: Manifest, name: str) -> Manifest:
    found: Manifest = next(one for one in pod["volumes"] if one["name"] == name)
    return found


def test_two_stages_on_one_device(golden: Callable[[str, list[Manifest]], None]) -> None:
    stages = [
        a_stage(name, accelerator=HALF, resources={"cpu": "500m", "memory": "4Gi"}) for name in ("denoiser", "decoder")
    ]
    model = together(a_stage("encoder"), *stages, network={"tls": {"secretName": "toy-tls"}})
    mine = (POD, "toy-denoiser", "toy-decoder")
    golden("group", [one for one in children_of(model) if one["metadata"]["name"].startswith(mine)])


def test_a_group_is_one_deployment_and_each_stage_keeps_its_service() -> None:
    children = children_of(together())
    deployments = {one["metadata"]["name"] for one in children if one["kind"] == "Deployment"}
    assert deployments == {"toy-encoder", POD, "toy-frontend"}
    selector = child(children, "Deployment", POD)["spec"]["selector"]["matchLabels"]
    for stage in ("denoiser", "decoder"):
        assert child(children, "Service", f"toy-{stage}")["spec"]["selector"] == selector


def test_each_worker_of_a_pod_has_ports_of_its_own_and_its_service_leads_there() -> None:
    children = children_of(together())
    listening = [one.arguments[one.arguments.index("--listen") + 1] for one in group_file(children).members]
    ports = [
        child(children, "Service", f"toy-{name}")["spec"]["ports"][0]["targetPort"] for name in ("denoiser", "decoder")
    ]
    assert listening == [f"0.0.0.0:{port}" for port in ports]
    container = pod_of(children)["containers"][0]
    numbers = [port["containerPort"] for port in container["ports"]]
    assert len(set(numbers)) == len(numbers)
    assert set(ports) < set(numbers)
    assert container["readinessProbe"]["grpc"]["port"] in numbers


def test_stages_that_share_a_device_ask_for_it_once_and_are_told_which_it_is() -> None:
    children = children_of(
        together(a_stage("encoder"), *(a_stage(name, accelerator=HALF) for name in ("denoiser", "decoder")))
    )
    assert pod_of(children)["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert [one.environment for one in group_file(children).members] == [{"CUDA_VISIBLE_DEVICES": "0"}] * 2
    assert json.loads(files_of(children)["decoder.json"])["memoryFraction"] == 0.5


@pytest.mark.case("operator:O02")
def test_a_pod_asks_for_what_its_stages_ask_for_and_for_its_shared_memory() -> None:
    sized = {"resources": {"cpu": "1500m", "memory": "4Gi"}, "shm": {"size": "1Gi"}}
    children = children_of(together(a_stage("encoder"), a_stage("denoiser", **sized), a_stage("decoder", **sized)))
    pod = pod_of(children)
    assert volume(pod, "shm")["emptyDir"] == {"medium": "Memory", "sizeLimit": "2Gi"}
    assert volume(pod, "arena")["emptyDir"] == {"medium": "Memory", "sizeLimit": "272Mi"}
    assert pod["containers"][0]["resources"] == {
        "requests": {"cpu": "3", "memory": f"{8 * 1024 + 2 * 1024 + 272}Mi"},
        "limits": {"memory": f"{8 * 1024 + 2 * 1024 + 272}Mi"},
    }


def test_memory_is_bounded_only_if_each_stage_s_is() -> None:
    bounded = a_stage("denoiser", resources={"memory": "4Gi"})
    resources = pod_of(children_of(together(a_stage("encoder"), bounded, a_stage("decoder"))))["containers"][0][
        "resources"
    ]
    assert "limits" not in resources or "memory" not in resources["limits"]


def test_a_pod_has_the_time_of_its_slowest_stage() -> None:
    slow = a_stage("decoder", startupTimeoutSeconds=3600, drain={"timeoutSeconds": 300})
    children = children_of(together(a_stage("encoder"), a_stage("denoiser"), slow))
    probe = pod_of(children)["containers"][0]["startupProbe"]
    assert probe["failureThreshold"] * probe["periodSeconds"] >= 3600
    assert pod_of(children)["terminationGracePeriodSeconds"] > 300
    assert child(children, "Deployment", POD)["spec"]["progressDeadlineSeconds"] > 3600


def test_each_stage_of_a_pod_shows_its_own_certificate() -> None:
    own = [{"name": "decoder", "secretName": "decoder-tls"}]
    children = children_of(together(network={"tls": {"secretName": "toy-tls", "stages": own}}))
    pod = pod_of(children)
    mounts = {mount["mountPath"]: volume(pod, mount["name"]) for mount in pod["containers"][0]["volumeMounts"]}
    for member, secret in zip(group_file(children).members, ("toy-tls", "decoder-tls"), strict=True):
        folder = member.arguments[member.arguments.index("--tls") + 1]
        assert mounts[folder]["secret"]["secretName"] == secret


def test_templates_of_all_stages_of_a_pod_count() -> None:
    stages = [
        a_stage("denoiser", template={"spec": {"priorityClassName": "high"}}),
        a_stage("decoder", template={"metadata": {"annotations": {"team": "x"}}}),
    ]
    template = child(children_of(together(a_stage("encoder"), *stages)), "Deployment", POD)["spec"]["template"]
    assert template["spec"]["priorityClassName"] == "high"
    assert template["metadata"]["annotations"] == {"team": "x"}


def test_a_group_is_scaled_as_one() -> None:
    model = together(a_stage("encoder"), a_stage("denoiser", replicas=3), a_stage("decoder", replicas=3))
    owner = Owner("toy", "team", "uid-1", created=0)
    assert replicas_of(resolved(model), owner) == {"encoder": 1, "colocation-with-denoiser": 3, "frontend": 1}
    assert child(children_of(model), "Deployment", POD)["spec"]["replicas"] == 3

"""The manifests themselves, for each vendor and for the frontend, as golden files."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from omni_operator.build.children import replicas_of
from omni_operator.objects import Manifest
from omni_operator.plan.names import canonical
from omni_operator.plan.observe import Owner
from tests.support.operator_models import a_model, a_spec, a_stage, child, children_of, resolved, some_settings

Golden = Callable[[str, list[Manifest]], None]

VENDORS = {"cpu": "cpu", "nvidia": "h200", "rocm": "mi300", "ascend": "ascend910"}


def of_stage(stage: dict[str, Any]) -> list[Manifest]:
    """The children that one stage has to itself."""
    children = children_of(a_model(a_spec(stage)))
    component = "serving.omnimodel.dev/component"
    return [one for one in children if one["metadata"]["labels"].get(component) == stage["name"]]


def pod_of(children: list[Manifest], name: str) -> Manifest:
    pod: Manifest = child(children, "Deployment", name)["spec"]["template"]["spec"]
    return pod


@pytest.mark.case("operator:O10", "runtime:K8")
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_stage_of_each_vendor(vendor: str, golden: Golden) -> None:
    stage = a_stage("denoiser", VENDORS[vendor], resources={"cpu": "2", "memory": "8Gi"}, shm={"size": "1Gi"})
    golden(f"stage-{vendor}", of_stage(stage))


def test_the_frontend(golden: Golden) -> None:
    children = children_of(a_model(a_spec(frontend={"auth": {"apiKeysSecretRef": {"name": "keys"}}})))
    component = "serving.omnimodel.dev/component"
    golden("frontend", [one for one in children if one["metadata"]["labels"].get(component) == "frontend"])


def test_the_pods_of_a_model_with_tls(golden: Golden) -> None:
    own = [{"name": "denoiser", "secretName": "denoiser-tls"}]
    network = {"tls": {"secretName": "toy-tls", "stages": own}}
    children = children_of(a_model(a_spec(a_stage("encoder"), a_stage("denoiser"), network=network)))
    golden("tls", [one for one in children if one["kind"] == "Deployment"])


def test_a_stage_s_certificate_is_its_own_where_it_has_one_and_the_model_s_otherwise() -> None:
    network = {"tls": {"secretName": "toy-tls", "stages": [{"name": "denoiser", "secretName": "denoiser-tls"}]}}
    children = children_of(a_model(a_spec(a_stage("encoder"), a_stage("denoiser"), network=network)))
    secrets = {
        name: [volume["secret"]["secretName"] for volume in pod_of(children, name)["volumes"] if "secret" in volume]
        for name in ("toy-encoder", "toy-denoiser", "toy-frontend")
    }
    assert secrets == {"toy-encoder": ["toy-tls"], "toy-denoiser": ["denoiser-tls"], "toy-frontend": ["toy-tls"]}


def test_the_kubelet_asks_a_stage_with_tls_on_a_port_in_the_clear() -> None:
    network = {"tls": {"secretName": "toy-tls"}}
    [main] = pod_of(children_of(a_model(a_spec(a_stage("denoiser"), network=network))), "toy-denoiser")["containers"]
    ports = {port["name"]: port["containerPort"] for port in main["ports"]}
    probes = {main[kind]["grpc"]["port"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert probes == {ports["health"]} != {ports["grpc"]}
    assert main["command"][main["command"].index("--health-port") + 1] == str(ports["health"])


@pytest.mark.case("operator:D06")
def test_the_same_model_gives_the_same_bytes() -> None:
    assert canonical(children_of(a_model())) == canonical(children_of(a_model()))  # type: ignore[arg-type]


@pytest.mark.case("operator:D05")
def test_the_order_of_a_profile_s_environment_does_not_matter() -> None:
    names = [f"NAME_{number}" for number in range(8)]
    environments = [dict.fromkeys(random.Random(seed).sample(names, 8), "x") for seed in range(2)]
    rendered = [
        children_of(
            a_model(),
            some_settings(
                accelerators={
                    "allowFakeEngine": True,
                    "profiles": {"cpu": {"vendor": "cpu", "image": "i", "env": env}},
                    "pools": {"cpu": {"profile": "cpu"}},
                }
            ),
        )
        for env in environments
    ]
    assert rendered[0] == rendered[1]


@pytest.mark.case("operator:H09")
def test_selectors_are_the_two_frozen_labels() -> None:
    for one in children_of(a_model(labels={"team": "x"})):
        selector = one.get("spec", {}).get("selector")
        if selector is not None:
            labels = selector.get("matchLabels", selector)
            assert set(labels) == {"serving.omnimodel.dev/model", "serving.omnimodel.dev/component"}


@pytest.mark.case("operator:F01")
def test_loading_may_take_the_whole_start_up_budget_times_the_vendor_s_factor() -> None:
    children = of_stage(a_stage("denoiser", "ascend910", startupTimeoutSeconds=600))
    probe = pod_of(children, "toy-denoiser")["containers"][0]["startupProbe"]
    assert probe["failureThreshold"] * probe["periodSeconds"] >= 2 * 600


@pytest.mark.case("operator:F04")
def test_a_rollout_may_take_longer_than_starting() -> None:
    deployment = child(of_stage(a_stage("denoiser", startupTimeoutSeconds=3600)), "Deployment", "toy-denoiser")
    assert deployment["spec"]["progressDeadlineSeconds"] > 3600


@pytest.mark.case("operator:F10")
def test_the_kubelet_waits_longer_than_the_drain() -> None:
    pod = pod_of(of_stage(a_stage("denoiser", drain={"timeoutSeconds": 300})), "toy-denoiser")
    assert pod["terminationGracePeriodSeconds"] > 300


@pytest.mark.case("operator:F05")
def test_the_frontend_may_finish_its_longest_request() -> None:
    pod = pod_of(children_of(a_model(a_spec(frontend={"limits": {"requestTimeoutSeconds": 1200}}))), "toy-frontend")
    assert pod["terminationGracePeriodSeconds"] > 1200


@pytest.mark.case("operator:O01")
@pytest.mark.case("operator:O02")
def test_shared_memory_is_sized_and_counted_in_the_memory_limit() -> None:
    pod = pod_of(of_stage(a_stage("denoiser", resources={"memory": "4Gi"}, shm={"size": "2Gi"})), "toy-denoiser")
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}} in pod["volumes"]
    assert pod["containers"][0]["resources"]["limits"]["memory"] == "6Gi"


@pytest.mark.case("operator:E14")
def test_a_pool_may_name_a_runtime_class() -> None:
    assert pod_of(of_stage(a_stage("denoiser", "h200")), "toy-denoiser")["runtimeClassName"] == "nvidia"


@pytest.mark.case("operator:E11")
def test_the_container_asks_for_as_many_devices_as_the_stage() -> None:
    stage = a_stage("denoiser", accelerator={"pool": "ascend910", "count": 4})
    resources = pod_of(of_stage(stage), "toy-denoiser")["containers"][0]["resources"]
    assert resources["limits"]["huawei.com/Ascend910"] == resources["requests"]["huawei.com/Ascend910"] == "4"


def test_claims_are_mounted_read_only_in_the_pod_and_in_the_container() -> None:
    pod = pod_of(of_stage(a_stage("denoiser", "ascend910")), "toy-denoiser")
    claims = [volume for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
    mounts = {mount["name"]: mount for mount in pod["containers"][0]["volumeMounts"]}
    assert [claim["persistentVolumeClaim"]["claimName"] for claim in claims] == ["models", "ascend-driver"]
    assert all(claim["persistentVolumeClaim"]["readOnly"] and mounts[claim["name"]]["readOnly"] for claim in claims)


def test_a_template_adds_to_the_pod_but_takes_nothing_away() -> None:
    template = {
        "metadata": {"annotations": {"team": "x"}, "labels": {"serving.omnimodel.dev/model": "stolen"}},
        "spec": {
            "automountServiceAccountToken": True,
            "priorityClassName": "high",
            "containers": [
                {"name": "main", "env": [{"name": "EXTRA", "value": "1"}]},
                {"name": "sidecar", "image": "s"},
            ],
        },
    }
    children = of_stage(a_stage("denoiser", template=template))
    pod_template = child(children, "Deployment", "toy-denoiser")["spec"]["template"]
    pod, main = pod_template["spec"], pod_template["spec"]["containers"][0]
    assert pod_template["metadata"]["annotations"] == {"team": "x"}
    assert pod_template["metadata"]["labels"]["serving.omnimodel.dev/model"] == "toy"
    assert pod["automountServiceAccountToken"] is False
    assert pod["priorityClassName"] == "high"
    assert {"name": "EXTRA", "value": "1"} in main["env"]
    assert [container["name"] for container in pod["containers"]] == ["main", "sidecar"]


@pytest.mark.case("operator:D14")
def test_no_empty_map_or_list_is_asked_for_where_absent_would_do() -> None:
    def empties(value: Any, path: str) -> list[str]:
        if isinstance(value, dict):
            return [found for key, item in value.items() for found in empties(item, f"{path}.{key}")] or (
                [] if value else [path]
            )
        if isinstance(value, list):
            return [found for item in value for found in empties(item, path)] or ([] if value else [path])
        return []

    for one in children_of(a_model()):
        assert empties({key: value for key, value in one.items() if key != "data"}, one["kind"]) == []


def test_a_suspended_model_keeps_only_its_frontend() -> None:
    owner = Owner("toy", "team", "uid-1", created=0, is_suspended=True)
    assert replicas_of(resolved(a_model()), owner) == {"encoder": 0, "denoiser": 0, "decoder": 0, "frontend": 1}


DIAGNOSED = {"logLevel": "debug", "profiles": {"size": "2Gi"}, "adminPort": 50060}
TRACED = {"logLevel": "warning", "tracing": {"otlpEndpoint": "http://otel.observability:4317", "ratio": 0.1}}


def test_a_model_that_is_watched_closely(golden: Golden) -> None:
    spec = a_spec(a_stage("encoder"), a_stage("denoiser", **DIAGNOSED), monitoring=TRACED)
    golden("diagnostics", [one for one in children_of(a_model(spec)) if one["kind"] == "Deployment"])


def options_of(children: list[Manifest], name: str) -> dict[str, str]:
    """The container's options that have a value."""
    words = pod_of(children, name)["containers"][0]["command"]
    return {word: value for word, value in itertools.pairwise(words) if word.startswith("--")}


def test_each_component_logs_from_its_own_level_on_or_from_the_model_s() -> None:
    children = children_of(a_model(a_spec(a_stage("encoder"), a_stage("denoiser", **DIAGNOSED), monitoring=TRACED)))
    names = ("toy-encoder", "toy-denoiser", "toy-frontend")
    assert [options_of(children, name)["--log-level"] for name in names] == ["warning", "debug", "warning"]


def test_the_share_of_traced_requests_is_drawn_where_they_begin() -> None:
    children = children_of(a_model(a_spec(a_stage("denoiser"), monitoring=TRACED)))
    stage, frontend = options_of(children, "toy-denoiser"), options_of(children, "toy-frontend")
    assert stage["--otlp-endpoint"] == frontend["--otlp-endpoint"] == "http://otel.observability:4317"
    assert frontend["--trace-ratio"] == "0.1"
    assert "--trace-ratio" not in stage


def test_profiles_go_to_a_bounded_folder_that_the_container_may_write() -> None:
    children = of_stage(a_stage("denoiser", **DIAGNOSED))
    pod = pod_of(children, "toy-denoiser")
    mounts = {mount["name"]: mount for mount in pod["containers"][0]["volumeMounts"]}
    assert {"name": "profiles", "emptyDir": {"sizeLimit": "2Gi"}} in pod["volumes"]
    assert "readOnly" not in mounts["profiles"]
    assert options_of(children, "toy-denoiser")["--profile-dir"] == mounts["profiles"]["mountPath"]


def test_the_frontend_s_admin_port_is_on_the_loopback_address_and_its_tables_are_asked_for() -> None:
    spec = a_spec(a_stage("denoiser"), frontend={"adminPort": 8001, "logStats": True})
    children = children_of(a_model(spec))
    assert options_of(children, "toy-frontend")["--admin-port"] == "8001"
    assert "--admin-host" not in options_of(children, "toy-frontend")
    assert "--log-stats" in pod_of(children, "toy-frontend")["containers"][0]["command"]
    assert all(port["containerPort"] != 8001 for port in pod_of(children, "toy-frontend")["containers"][0]["ports"])


def test_the_frontend_is_told_from_where_media_may_come_and_how_much_only_if_the_model_says() -> None:
    media = {"allowPrivateAddresses": True, "maxBytes": 4096, "maxVideoFrames": 8}
    told = options_of(children_of(a_model(a_spec(a_stage("denoiser"), frontend={"media": media}))), "toy-frontend")
    assert (told["--media-max-bytes"], told["--media-max-video-frames"]) == ("4096", "8")
    assert "--media-allow-private-addresses" in told
    usual = options_of(children_of(a_model(a_spec(a_stage("denoiser")))), "toy-frontend")
    assert not any(option.startswith("--media") for option in usual)


def test_the_admin_port_is_on_the_loopback_address_and_told_to_nobody() -> None:
    children = of_stage(a_stage("denoiser", **DIAGNOSED))
    assert options_of(children, "toy-denoiser")["--admin-port"] == "50060"
    assert "--admin-host" not in options_of(children, "toy-denoiser")
    assert all(port["containerPort"] != 50060 for port in pod_of(children, "toy-denoiser")["containers"][0]["ports"])

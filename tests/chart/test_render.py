"""What the chart renders to, without a cluster."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from omni_contract.accelerators import Vendor
from omni_operator.settings import Settings, load_settings
from tests.cluster.errors import CommandFailed
from tests.support.helm import Helm, Manifest, find

pytestmark = pytest.mark.control

ROLES = ("Role", "ClusterRole")
THREE_VENDORS = {
    "images": {"runtime": {"nvidia": "omni-operator/runtime-cuda", "rocm": "example/runtime-rocm:7"}},
    "accelerators": {
        "pools": {
            "h100": {"profile": "nvidia", "nodeSelector": {"gpu": "h100"}, "runtimeClassName": "nvidia"},
            "mi300": {"profile": "rocm", "tolerations": [{"key": "amd.com/gpu", "operator": "Exists"}]},
            "ascend910": {"profile": "ascend", "image": "example/runtime-ascend@sha256:" + 64 * "0"},
        }
    },
}


def settings_of(manifests: list[Manifest], folder: Path) -> Settings:
    path = folder / "config.yaml"
    path.write_text(find(manifests, "ConfigMap", "omni-operator-config")["data"]["config.yaml"])
    return load_settings(path)


def test_chart_passes_helm_lint(chart: Helm) -> None:
    assert "0 chart(s) failed" in chart.lint()


def test_operator_reads_the_configuration_that_the_chart_writes(chart: Helm, tmp_path: Path) -> None:
    settings = settings_of(chart.render(), tmp_path)

    assert settings.accelerators.pools.keys() == {"cpu"}
    assert settings.accelerators.profiles["cpu"].image == "omni-operator/runtime-cpu:0.1.0"
    assert settings.frontend.image == "omni-operator/frontend:0.1.0"


@pytest.mark.case("operator:E13")
def test_each_vendor_gets_its_own_image_or_none(chart: Helm, tmp_path: Path) -> None:
    catalog = settings_of(chart.render(THREE_VENDORS), tmp_path).accelerators

    assert {name: profile.image for name, profile in catalog.profiles.items()} == {
        "cpu": "omni-operator/runtime-cpu:0.1.0",
        "nvidia": "omni-operator/runtime-cuda:0.1.0",
        "rocm": "example/runtime-rocm:7",
        "ascend": None,
    }
    assert catalog.pools["h100"].node_selector == {"gpu": "h100"}
    assert catalog.pools["ascend910"].image == "example/runtime-ascend@sha256:" + 64 * "0"
    assert catalog.profiles["rocm"].vendor is Vendor.ROCM


def test_registry_is_put_before_every_image(chart: Helm, tmp_path: Path) -> None:
    manifests = chart.render({"images": {"registry": "mirror.example:5000/"}})

    deployment = find(manifests, "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == (
        "mirror.example:5000/omni-operator/operator:0.1.0"
    )
    settings = settings_of(manifests, tmp_path)
    assert settings.frontend.image == "mirror.example:5000/omni-operator/frontend:0.1.0"
    assert settings.accelerators.profiles["cpu"].image == "mirror.example:5000/omni-operator/runtime-cpu:0.1.0"


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"operatr": {}}, "operatr"),
        ({"operator": {"replicas": "two"}}, "replicas"),
        ({"operator": {"log": {"level": "loud"}}}, "level"),
        ({"images": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
        ({"images": {"operator": ""}}, "operator"),
        ({"accelerators": {"profiles": {"nvidia": {"vendor": "nvidea"}}}}, "vendor"),
        ({"accelerators": {"pools": {"h100": {"profil": "nvidia"}}}}, "profil"),
        ({"accelerators": {"pools": {"h100": {"nodeSelector": {}}}}}, "profile"),
        ({"accelerators": {"pools": {"H100": {"profile": "nvidia"}}}}, "H100"),
        ({"metrics": {"podMonitor": {"interval": "often"}}}, "interval"),
    ],
)
def test_wrong_values_are_refused_by_name(chart: Helm, values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(CommandFailed, match=complaint):
        chart.render(values)


@pytest.mark.parametrize(
    ("accelerators", "complaint"),
    [
        (
            {"pools": {"h100": {"profile": "h100"}}},
            r'pools\.h100: profile "h100" is not in accelerators\.profiles; known: ascend, cpu',
        ),
        (
            {"profiles": {"intel": {"vendor": "xpu"}}, "pools": {"max": {"profile": "intel"}}},
            r'pools\.max: vendor "xpu" needs a resource',
        ),
        (
            {"pools": {"big": {"profile": "cpu", "resource": "nvidia.com/gpu"}}},
            r'pools\.big: vendor "cpu" has no devices',
        ),
    ],
    ids=["unknown profile", "no resource", "resource of a cpu"],
)
def test_pools_that_the_operator_would_refuse_are_refused_by_helm(
    chart: Helm, accelerators: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(CommandFailed, match=complaint):
        chart.render({"accelerators": accelerators})


@pytest.mark.case("operator:K01")
def test_no_role_has_a_wildcard_or_reads_secrets(chart: Helm) -> None:
    rules = [rule for one in chart.render() if one["kind"] in ROLES for rule in one["rules"]]

    assert not [rule for rule in rules if "*" in rule["apiGroups"] + rule["resources"] + rule["verbs"]]
    assert not [rule for rule in rules if "secrets" in rule["resources"]]


def test_operator_may_hand_on_the_rights_of_frontends_only(chart: Helm) -> None:
    rules = find(chart.render(), "ClusterRole", "omni-operator")["rules"]

    assert [rule for rule in rules if {"bind", "escalate", "impersonate"} & set(rule["verbs"])] == [
        {
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["clusterroles"],
            "resourceNames": ["omni-frontend"],
            "verbs": ["bind"],
        }
    ]


@pytest.mark.case("operator:K06")
def test_operator_of_some_namespaces_gets_rights_in_these_alone(chart: Helm, tmp_path: Path) -> None:
    manifests = chart.render({"operator": {"watchNamespaces": ["team-a", "team-b"]}})

    bindings = [one for one in manifests if one["kind"] == "RoleBinding" and one["roleRef"]["kind"] == "ClusterRole"]
    assert [one["metadata"]["namespace"] for one in bindings] == ["team-a", "team-b"]
    assert not [one for one in manifests if one["kind"] == "ClusterRoleBinding"]
    assert settings_of(manifests, tmp_path).watch_namespaces == ("team-a", "team-b")


def test_crd_is_the_generated_one_and_survives_uninstall(chart: Helm) -> None:
    crd = find(chart.render(), "CustomResourceDefinition")
    generated = yaml.safe_load((chart.chart / "files" / "omnimodels.yaml").read_text())

    assert crd["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert crd == generated


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"crds": {"install": False}}, "CustomResourceDefinition"),
        ({"admissionPolicy": {"enabled": False}}, "ValidatingAdmissionPolicy"),
        ({"admissionPolicy": {"enabled": False}}, "ValidatingAdmissionPolicyBinding"),
        ({"metrics": {"service": False}}, "Service"),
    ],
)
def test_switched_off_means_not_rendered(chart: Helm, values: dict[str, Any], kind: str) -> None:
    assert kind in {one["kind"] for one in chart.render()}
    assert kind not in {one["kind"] for one in chart.render(values)}


def test_user_roles_and_pod_monitor_follow_their_switches(chart: Helm) -> None:
    manifests = chart.render(
        {"rbac": {"aggregateToUserRoles": False}, "metrics": {"podMonitor": {"enabled": True, "labels": {"team": "x"}}}}
    )

    assert "omnimodel-view" not in {one["metadata"]["name"] for one in manifests}
    assert find(manifests, "PodMonitor")["metadata"]["labels"]["team"] == "x"


@pytest.mark.case("operator:J04")
def test_services_select_the_operator_and_nothing_else_of_a_parent_chart(chart: Helm) -> None:
    manifests = chart.render(release="parent")

    selector = find(manifests, "Service")["spec"]["selector"]
    deployment = find(manifests, "Deployment")["spec"]
    assert selector == deployment["selector"]["matchLabels"]
    assert selector["app.kubernetes.io/component"] == "operator"
    assert selector.items() <= deployment["template"]["metadata"]["labels"].items()


def test_probes_and_scrapers_of_the_cluster_reach_the_operator(chart: Helm) -> None:
    [deployment] = [one for one in chart.render() if one["kind"] == "Deployment"]
    [main] = deployment["spec"]["template"]["spec"]["containers"]
    assert main["args"][-2:] == ["--host", "0.0.0.0"]


def test_change_of_configuration_restarts_the_operator(chart: Helm) -> None:
    def checksum(manifests: list[Manifest]) -> str:
        return find(manifests, "Deployment")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    assert checksum(chart.render()) == checksum(chart.render({"operator": {"replicas": 2}}))
    assert checksum(chart.render()) != checksum(chart.render({"accelerators": {"allowFakeEngine": True}}))


def test_administrator_bounds_the_masters_of_managed_stores(chart: Helm, tmp_path: Path) -> None:
    values = {"masters": {"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "4Gi"}}}}

    masters = settings_of(chart.render(values), tmp_path).masters

    assert (masters.requests["memory"], masters.limits) == ("2Gi", {"memory": "4Gi"})

"""The life of a release, by the real Helm on a real API server: install, upgrade, uninstall."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.cluster.control import ControlPlane
from tests.cluster.errors import CommandFailed
from tests.support.helm import NAMESPACE, RELEASE, Helm, Manifest

pytestmark = pytest.mark.control

CRD = "omnimodels.serving.omnimodel.dev"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tiny-qwen-image.yaml"


@pytest.fixture
def installed(release: Helm) -> Iterator[Helm]:
    release.install()
    yield release
    release.uninstall()


@pytest.fixture
def older_chart(tmp_path: Path, release: Helm) -> Helm:
    """The chart as it might have been before: its resource definition lacks `spec.suspend`."""
    folder = tmp_path / "omni-operator"
    shutil.copytree(release.chart, folder)
    crd = yaml.safe_load((folder / "files" / "omnimodels.yaml").read_text())
    del spec_properties(crd)["suspend"]
    (folder / "files" / "omnimodels.yaml").write_text(yaml.safe_dump(crd, sort_keys=False))
    return replace(release, chart=folder)


def spec_properties(crd: Manifest) -> Manifest:
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    properties: Manifest = schema["properties"]["spec"]["properties"]
    return properties


def live_crd(plane: ControlPlane) -> Manifest:
    crd: Manifest = yaml.safe_load(plane.kubectl("get", "crd", CRD, "-o", "yaml"))
    return crd


def establish(plane: ControlPlane) -> None:
    plane.kubectl("wait", "--for=condition=Established", f"crd/{CRD}", "--timeout=30s")


def test_installing_again_with_the_same_values_changes_nothing(installed: Helm, api_server: ControlPlane) -> None:
    def versions() -> str:
        kinds = "deployment,configmap,serviceaccount,service,role,rolebinding"
        output = "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{'\\n'}{end}"
        return api_server.kubectl("get", kinds, "-n", NAMESPACE, "-l", "helm.sh/chart", "-o", output)

    before = versions()
    installed.install()

    assert RELEASE in before
    assert versions() == before


@pytest.mark.case("operator:I02")
def test_upgrade_brings_new_fields_and_uninstall_keeps_the_models(
    older_chart: Helm, release: Helm, api_server: ControlPlane
) -> None:
    older_chart.install({"admissionPolicy": {"enabled": False}})
    establish(api_server)
    api_server.kubectl("apply", "-f", str(EXAMPLE))
    assert "suspend" not in spec_properties(live_crd(api_server))

    release.install({"admissionPolicy": {"enabled": False}})
    assert "suspend" in spec_properties(live_crd(api_server))

    release.uninstall()
    assert "tiny-qwen-image" in api_server.kubectl("get", "omnimodels")


@pytest.mark.case("operator:I03")
def test_uninstall_removes_everything_else(release: Helm, api_server: ControlPlane) -> None:
    release.install()
    release.uninstall()

    kinds = "deployment,configmap,serviceaccount,service,role,rolebinding,clusterrole,clusterrolebinding"
    policies = "validatingadmissionpolicy,validatingadmissionpolicybinding"
    selector = "app.kubernetes.io/name=omni-operator"
    assert api_server.kubectl("get", f"{kinds},{policies}", "-A", "-l", selector, "-o", "name") == ""
    assert live_crd(api_server)["metadata"]["name"] == CRD


def test_release_is_installed_again_over_the_kept_definition(release: Helm, api_server: ControlPlane) -> None:
    release.install()
    release.uninstall()

    assert "STATUS: deployed" in release.install()
    release.uninstall()


def test_definition_of_a_user_who_manages_it_is_left_alone(release: Helm, api_server: ControlPlane) -> None:
    api_server.kubectl("create", "-f", str(release.chart / "files" / "omnimodels.yaml"))
    # Until then, the server itself writes to it.
    establish(api_server)
    before = live_crd(api_server)["metadata"]["resourceVersion"]

    release.install({"crds": {"install": False}})
    release.uninstall()

    assert live_crd(api_server)["metadata"]["resourceVersion"] == before


def test_operator_pods_pass_the_restricted_level(installed: Helm, api_server: ControlPlane) -> None:
    api_server.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    deployment = yaml.safe_load(api_server.kubectl("get", "deployment", RELEASE, "-n", NAMESPACE, "-o", "yaml"))
    spec = deployment["spec"]["template"]["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator"}, "spec": spec}

    made = api_server.kubectl(
        "create", "-n", NAMESPACE, "--dry-run=server", "-o", "name", "-f", "-", stdin=yaml.dump(pod)
    )

    assert made.strip() == "pod/operator"


def test_notes_name_the_pools_and_what_lacks_an_image(release: Helm) -> None:
    notes = release.install({"accelerators": {"pools": {"h100": {"profile": "nvidia"}}}})
    release.uninstall()

    assert "Pools of this cluster: cpu, h100 (without an image, so not usable yet: h100)" in notes


def test_misspelt_value_fails_the_installation_before_anything_is_made(release: Helm, api_server: ControlPlane) -> None:
    with pytest.raises(CommandFailed, match="additional properties 'replica' not allowed"):
        release.install({"operator": {"replica": 2}})

    assert api_server.kubectl("get", "clusterrole", "omni-frontend", "--ignore-not-found") == ""

"""The admission policy: cluster facts are checked when a model is applied, also while no operator runs."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.control import ControlPlane
from tests.cluster.errors import CommandFailed
from tests.support.helm import Helm

pytestmark = pytest.mark.control

EFFECTIVE_TIMEOUT_S = 30
POOLS: dict[str, Any] = {"h100": {"profile": "nvidia"}, "mi300": {"profile": "rocm"}}
VALUES: dict[str, Any] = {"images": {"runtime": {"nvidia": "runtime-cuda"}}, "accelerators": {"pools": POOLS}}


def model(*pools: str | None, fake: bool = False) -> dict[str, Any]:
    engine = {"fake": {}} if fake else {}
    names = ("text-encoder", "denoiser", "vae-decoder")
    stages = [
        {"name": name, **engine, **({"accelerator": {"pool": pool}} if pool else {})}
        for name, pool in zip(names, pools, strict=False)
    ]
    return {
        "apiVersion": "serving.omnimodel.dev/v1alpha1",
        "kind": "OmniModel",
        "metadata": {"name": "picture", "namespace": "default"},
        "spec": {"model": {"source": "pvc://models/qwen-image"}, "family": "qwen-image", "stages": stages},
    }


def apply(plane: ControlPlane, manifest: dict[str, Any], *options: str) -> str:
    return plane.kubectl("apply", *options, "-f", "-", stdin=yaml.dump(manifest))


def wait_until_effective(plane: ControlPlane) -> None:
    """The API server takes a moment to act on a new policy."""
    deadline = time.monotonic() + EFFECTIVE_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            apply(plane, model("nowhere"), "--dry-run=server")
        except CommandFailed as refused:
            if "not a pool of this cluster" in refused.output:
                return
        time.sleep(0.2)
    pytest.fail(f"the policy does nothing after {EFFECTIVE_TIMEOUT_S} s")


@pytest.fixture(scope="module")
def plane(helm: Path, api_server: ControlPlane) -> Iterator[ControlPlane]:
    release = Helm(helm, api_server.kubeconfig)
    release.install(VALUES)
    api_server.kubectl("wait", "--for=condition=Established", "crd/omnimodels.serving.omnimodel.dev", "--timeout=30s")
    wait_until_effective(api_server)
    yield api_server
    release.uninstall()
    api_server.kubectl("delete", "crd", "omnimodels.serving.omnimodel.dev")


def test_model_on_known_pools_is_accepted(plane: ControlPlane) -> None:
    assert "omnimodel.serving.omnimodel.dev/picture" in apply(plane, model("cpu", "h100", None), "--dry-run=server")


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        (
            model("cpu", "a100", "b200"),
            'stage "denoiser": accelerator.pool "a100" is not a pool of this cluster; known pools: cpu, h100, mi300',
        ),
        (
            model("mi300"),
            'stage "text-encoder": accelerator.pool "mi300" belongs to a vendor without a runtime image',
        ),
        (model("cpu", fake=True), 'stage "text-encoder": the fake engine is for tests only'),
    ],
    ids=["unknown pool", "no image", "fake engine"],
)
@pytest.mark.case("operator:E13")
def test_model_that_the_cluster_cannot_run_is_refused_with_the_way_out(
    plane: ControlPlane, manifest: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(CommandFailed) as refused:
        apply(plane, manifest, "--dry-run=server")

    assert sentence in refused.value.output
    assert "chart value" in refused.value.output


@pytest.mark.case("operator:G03")
def test_pool_that_went_away_blocks_neither_labels_nor_deletion(plane: ControlPlane, helm: Path) -> None:
    apply(plane, model("h100"))
    parameters = ("configmap/omni-operator-pools", "-n", "omni-system", "--type=merge", "-p")
    plane.kubectl("patch", *parameters, '{"data": {"pools": "cpu,mi300"}}')
    wait_until_refused(plane, model("h100", "cpu"))

    plane.kubectl("label", "omnimodel/picture", "team=vision")
    plane.kubectl("annotate", "omnimodel/picture", "serving.omnimodel.dev/refresh=1")
    plane.kubectl("delete", "omnimodel/picture")

    plane.kubectl("patch", *parameters, '{"data": {"pools": "cpu,h100,mi300"}}')
    assert plane.kubectl("get", "omnimodels") == ""


def wait_until_refused(plane: ControlPlane, manifest: dict[str, Any]) -> None:
    deadline = time.monotonic() + EFFECTIVE_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            apply(plane, manifest, "--dry-run=server")
        except CommandFailed:
            return
        time.sleep(0.2)
    pytest.fail("a spec that names the pool which went away is still accepted")

"""The admission policy: cluster facts are checked when a model is applied, also while no operator runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.control import ControlPlane
from tests.cluster.errors import CommandFailed
from tests.support.helm import Helm
from tests.support.waiting import eventually

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


def refusal(plane: ControlPlane, manifest: dict[str, Any]) -> str:
    """The API server's words against the manifest; empty if it would be accepted."""
    try:
        apply(plane, manifest, "--dry-run=server")
    except CommandFailed as refused:
        return refused.output
    return ""


def wait_until_unknown(plane: ControlPlane, pool: str) -> None:
    """The API server takes a moment to act on a new policy or new parameters. Asks with a spec that no test applies."""
    eventually(
        f"pool {pool} is refused",
        lambda: "not a pool of this cluster" in refusal(plane, model(pool, pool)),
        EFFECTIVE_TIMEOUT_S,
    )


@pytest.fixture(scope="module")
def plane(helm: Path, api_server: ControlPlane) -> Iterator[ControlPlane]:
    release = Helm(helm, api_server.kubeconfig)
    release.install(VALUES)
    api_server.kubectl("wait", "--for=condition=Established", "crd/omnimodels.serving.omnimodel.dev", "--timeout=30s")
    wait_until_unknown(api_server, "nowhere")
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
    answer = refusal(plane, manifest)

    assert sentence in answer
    assert "chart value" in answer


@pytest.mark.case("operator:G03")
def test_pool_that_went_away_blocks_neither_labels_nor_deletion(plane: ControlPlane, helm: Path) -> None:
    apply(plane, model("h100"))
    parameters = ("configmap/omni-operator-pools", "-n", "omni-system", "--type=merge", "-p")
    plane.kubectl("patch", *parameters, '{"data": {"pools": "cpu,mi300"}}')
    wait_until_unknown(plane, "h100")

    plane.kubectl("label", "omnimodel/picture", "team=vision")
    plane.kubectl("annotate", "omnimodel/picture", "serving.omnimodel.dev/refresh=1")
    plane.kubectl("delete", "omnimodel/picture")

    plane.kubectl("patch", *parameters, '{"data": {"pools": "cpu,h100,mi300"}}')
    assert plane.kubectl("get", "omnimodels") == ""

"""The operator's rights: it never lacks one, and it has none that it does not use."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from omni_operator.plan.changes import HISTORY
from tests.cluster.control import ControlPlane
from tests.support.helm import NAMESPACE, RELEASE, Helm
from tests.support.operator_process import installed_operator
from tests.support.rights import Right, account, granted, refused, used
from tests.support.waiting import eventually

pytestmark = pytest.mark.control

TIMEOUT_S = 60
OPERATOR = account(NAMESPACE, RELEASE)
GROUP = "serving.omnimodel.dev"
UNSEEN = {
    # asked for by admission and authorization on the operator's behalf, so not by a request of its own
    Right("rbac.authorization.k8s.io", "clusterroles", "bind"),
    Right(GROUP, "omnimodels/finalizers", "update"),
}
VALUES = {"operator": {"replicas": 0}, "admissionPolicy": {"enabled": False}, "accelerators": {"allowFakeEngine": True}}


def model(*stages: str) -> dict[str, Any]:
    edges = [{"from": source, "to": target} for source, target in pairwise(stages)]
    specs = [{"name": name, "fake": {}, "accelerator": {"pool": "cpu"}} for name in stages]
    specs[-1]["output"] = {"modality": "image"}
    for spec in specs[1:-1]:
        spec |= {"resources": {"cpu": "100m"}, "autoscaling": {"maxReplicas": 3, "cpuUtilization": 70}}
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "OmniModel",
        "metadata": {"name": "chain", "namespace": "default"},
        "spec": {"model": {"source": "pvc://models/none"}, "stages": specs, "edges": edges},
    }


def apply(plane: ControlPlane, manifest: dict[str, Any]) -> None:
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.dump(manifest))


def names(plane: ControlPlane, kinds: str) -> set[str]:
    selector = f"{GROUP}/model=chain"
    output = "jsonpath={range .items[*]}{.kind}/{.metadata.name} {end}"
    return set(plane.kubectl("get", kinds, "-n", "default", "-l", selector, "-o", output).split())


def live_through(plane: ControlPlane) -> None:
    """Everything that the life of a model can ask of the operator: made, healed, changed, shrunk, deleted."""
    children = "deployments,services,configmaps,controllerrevisions,serviceaccounts,rolebindings"
    apply(plane, model("first", "second", "last"))
    eventually("four Deployments", lambda: len(names(plane, "deployments")) == 4, TIMEOUT_S)
    plane.kubectl("delete", "deployment/chain-second", "-n", "default", "--wait=true")
    eventually("the Deployment is back", lambda: "Deployment/chain-second" in names(plane, "deployments"), TIMEOUT_S)
    apply(plane, model("first", "last"))
    eventually("a stage less", lambda: "Deployment/chain-second" not in names(plane, "deployments"), TIMEOUT_S)
    for number in range(HISTORY + 1):
        changed = model("first", "last")
        changed["spec"]["stages"][0]["drain"] = {"timeoutSeconds": 100 + number}
        apply(plane, changed)
        eventually("the change is seen", lambda: observed(plane) == generation(plane), TIMEOUT_S)
    plane.kubectl("delete", "omnimodel/chain", "-n", "default")
    # The garbage collector would do it, once it knows of this new kind of owner: it looks every 30 s.
    plane.kubectl("delete", children, "-n", "default", "-l", f"{GROUP}/model=chain", "--wait=false")
    eventually("nothing is left", lambda: not names(plane, children), TIMEOUT_S)


def observed(plane: ControlPlane) -> int:
    return int(shown(plane).get("status", {}).get("observedGeneration", 0))


def generation(plane: ControlPlane) -> int:
    return int(shown(plane)["metadata"]["generation"])


def shown(plane: ControlPlane) -> dict[str, Any]:
    model: dict[str, Any] = plane.rest.get(f"/apis/{GROUP}/v1alpha1/namespaces/default/omnimodels/chain")
    return model


@pytest.mark.case("operator:K01", "operator:K03")
def test_operator_uses_exactly_the_rights_that_the_chart_grants(
    helm: Path, control_plane: ControlPlane, tmp_path: Path
) -> None:
    release = Helm(helm, control_plane.kubeconfig)
    release.install(VALUES)
    roles = [role for role in release.render(VALUES) if role["metadata"]["name"].startswith(RELEASE)]
    try:
        with installed_operator(control_plane, tmp_path):
            live_through(control_plane)
    finally:
        release.uninstall()
        control_plane.kubectl("delete", "crd", f"omnimodels.{GROUP}")

    assert refused(control_plane.audit_log, OPERATOR) == []
    has = granted(role for role in roles if role["kind"] in ("Role", "ClusterRole"))
    uses = used(control_plane.audit_log, OPERATOR)
    assert sorted(uses - has) == []
    assert sorted(has - uses - UNSEEN) == []

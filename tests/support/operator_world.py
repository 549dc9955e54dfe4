"""A namespace of a real API server, with the claim that the models mount, seen as a user of the operator sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.cluster.control import ControlPlane
from tests.cluster.rest import CallRefused
from tests.support.waiting import PATIENCE_S, POLL_S, eventually

GROUP = "serving.omnimodel.dev"
MODELS = f"/apis/{GROUP}/v1alpha1/namespaces/{{namespace}}/omnimodels"
APPS = "/apis/apps/v1/namespaces/{namespace}"
CORE = "/api/v1/namespaces/{namespace}"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"

AUTOSCALING = "/apis/autoscaling/v2/namespaces/{namespace}"

CHILDREN = {
    "deployments": APPS,
    "controllerrevisions": APPS,
    "configmaps": CORE,
    "services": CORE,
    "serviceaccounts": CORE,
    "rolebindings": RBAC,
    "horizontalpodautoscalers": AUTOSCALING,
}

Object = dict[str, Any]


@dataclass(frozen=True)
class World:
    plane: ControlPlane
    namespace: str

    # ---- models

    def create(self, name: str, spec: Object) -> Object:
        model = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "OmniModel", "metadata": {"name": name}, "spec": spec}
        made: Object = self.plane.rest.post(self._path(MODELS), model)
        return made

    def model(self, name: str) -> Object:
        model: Object = self.plane.rest.get(f"{self._path(MODELS)}/{name}")
        return model

    def edit(self, name: str, change: Callable[[Object], None]) -> Object:
        """Changes a model as a user would, again if somebody else was faster."""
        while True:
            model = self.model(name)
            change(model)
            try:
                self.plane.rest.call("PUT", f"{self._path(MODELS)}/{name}", model)
            except CallRefused as refusal:
                if refusal.status != 409:
                    raise
            else:
                return self.model(name)

    def delete(self, name: str) -> None:
        self.plane.rest.delete(f"{self._path(MODELS)}/{name}")

    def condition(self, name: str, kind: str) -> str:
        """ "True", "False" or "Unknown"; empty while the present generation has not been looked at."""
        model = self.model(name)
        status = model.get("status", {})
        if status.get("observedGeneration") != model["metadata"]["generation"]:
            return ""
        return next((one["status"] for one in status["conditions"] if one["type"] == kind), "")

    def wait_ready(self, *names: str, patience_s: float = PATIENCE_S, poll_s: float = POLL_S) -> None:
        for name in names:
            eventually(f"{name} is Ready", partial(self._is_ready, name), patience_s, poll_s)

    def _is_ready(self, name: str) -> bool:
        return self.condition(name, "Ready") == "True"

    # ---- what the operator makes

    def children(self, plural: str, model: str) -> dict[str, Object]:
        selector = f"?labelSelector={GROUP}%2Fmodel%3D{model}"
        items = self.plane.rest.get(f"{self._path(CHILDREN[plural])}/{plural}{selector}")["items"]
        return {item["metadata"]["name"]: item for item in items}

    def all_children(self, model: str) -> set[str]:
        return {f"{plural}/{name}" for plural in CHILDREN for name in self.children(plural, model)}

    def delete_child(self, plural: str, name: str) -> None:
        self.plane.rest.delete(f"{self._path(CHILDREN[plural])}/{plural}/{name}")

    def pods(self, model: str) -> dict[str, Object]:
        """By name, without those that are leaving."""
        selector = f"?labelSelector={GROUP}%2Fmodel%3D{model}"
        items = self.plane.rest.get(f"{self._path(CORE)}/pods{selector}")["items"]
        return {item["metadata"]["name"]: item for item in items if "deletionTimestamp" not in item["metadata"]}

    def pod_ages(self, model: str) -> dict[str, set[str]]:
        """Pods' uids by component: what changes if and only if something restarts."""
        ages: dict[str, set[str]] = {}
        for pod in self.pods(model).values():
            ages.setdefault(pod["metadata"]["labels"][f"{GROUP}/component"], set()).add(pod["metadata"]["uid"])
        return ages

    def _path(self, template: str) -> str:
        return template.format(namespace=self.namespace)


@contextmanager
def world(plane: ControlPlane, namespace: str) -> Iterator[World]:
    """With a bound claim "models", without which the scheduler places no stage."""
    rest = plane.rest
    rest.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    claim = {"namespace": namespace, "name": "models"}
    storage = {"storageClassName": "static", "accessModes": ["ReadOnlyMany"]}
    rest.post(
        "/api/v1/persistentvolumes",
        {
            "metadata": {"name": f"{namespace}-models"},
            "spec": {**storage, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/nowhere"}, "claimRef": claim},
        },
    )
    rest.post(
        f"/api/v1/namespaces/{namespace}/persistentvolumeclaims",
        {
            "metadata": {"name": "models"},
            "spec": {
                **storage,
                "volumeName": f"{namespace}-models",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    )
    try:
        yield World(plane, namespace)
    finally:
        rest.delete(f"/api/v1/namespaces/{namespace}")
        rest.delete(f"/api/v1/persistentvolumes/{namespace}-models")

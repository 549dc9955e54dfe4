"""Kubernetes objects as the operator handles them: free-form manifests, typed kinds and typed references."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from omni_contract.wire import names

Manifest: TypeAlias = dict[str, Any]
"""An object as the API server writes it in JSON. Kubernetes defines its content, not we."""


@dataclass(frozen=True)
class Kind:
    """A kind of object and its place in the API."""

    name: str
    plural: str
    version: str
    group: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{name}" if name else "")


OMNI_MODEL = Kind(names.KIND, names.PLURAL, names.VERSION, names.GROUP)
CONTROLLER_REVISION = Kind("ControllerRevision", "controllerrevisions", "v1", "apps")
CONFIG_MAP = Kind("ConfigMap", "configmaps", "v1")
SERVICE_ACCOUNT = Kind("ServiceAccount", "serviceaccounts", "v1")
ROLE_BINDING = Kind("RoleBinding", "rolebindings", "v1", "rbac.authorization.k8s.io")
SERVICE = Kind("Service", "services", "v1")
DEPLOYMENT = Kind("Deployment", "deployments", "v1", "apps")
POD = Kind("Pod", "pods", "v1")
EVENT = Kind("Event", "events", "v1")
AUTOSCALER = Kind("HorizontalPodAutoscaler", "horizontalpodautoscalers", "v2", "autoscaling")
LEASE = Kind("Lease", "leases", "v1", "coordination.k8s.io")

CHILD_KINDS = (CONTROLLER_REVISION, CONFIG_MAP, SERVICE_ACCOUNT, ROLE_BINDING, SERVICE, DEPLOYMENT, AUTOSCALER)
"""Everything a model's objects may be, in the order in which they are applied: what others refer to comes first."""

_BY_NAME = {kind.name: kind for kind in (OMNI_MODEL, *CHILD_KINDS, POD, EVENT, LEASE)}


@dataclass(frozen=True, order=True)
class ModelKey:
    """Which model: what events carry and the queue holds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Ref:
    """Which object of a namespace."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name} {self.name}"


def kind_of(manifest: Manifest) -> Kind:
    return _BY_NAME[manifest["kind"]]


def ref_of(manifest: Manifest) -> Ref:
    return Ref(kind_of(manifest), manifest["metadata"]["name"])


def labels_of(manifest: Manifest) -> dict[str, str]:
    labels: dict[str, str] = manifest["metadata"].get("labels") or {}
    return labels


def annotations_of(manifest: Manifest) -> dict[str, str]:
    annotations: dict[str, str] = manifest["metadata"].get("annotations") or {}
    return annotations


def controller_of(manifest: Manifest) -> Manifest | None:
    """The owner that controls the object, as its owner reference says."""
    owners: list[Manifest] = manifest["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)

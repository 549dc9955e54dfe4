"""The master of a managed store: one process that keeps the store's books, and the Service at which members join."""

from omni_contract.resolve import ResolvedDevice, ResolvedModel, device_of_master
from omni_contract.wire import names as wire
from omni_operator import labels
from omni_operator.build import pod
from omni_operator.objects import Manifest
from omni_operator.plan import names
from omni_operator.settings import ImageSettings, MasterSettings

GRACE_S = 5
"""It has nothing to finish: payloads are in the members' memory, and lost without its books."""


def master_manifests(
    model: ResolvedModel, connector: str, settings: MasterSettings, images: ImageSettings
) -> list[Manifest]:
    component = names.master_component(connector)
    device = device_of_master(model, connector)
    return [_service(model.name, component), _deployment(model.name, component, device, settings, images)]


def master_address(model: ResolvedModel, connector: str) -> str:
    """HOST:PORT for members; by name, which outlives the pod."""
    service = names.component_name(model.name, names.master_component(connector))
    return f"{service}.{model.namespace}.svc:{wire.MASTER_PORT}"


def _metadata(model: str, component: str) -> Manifest:
    return {"name": names.component_name(model, component), "labels": labels.of_component(model, component)}


def _service(model: str, component: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(model, component),
        "spec": {
            "type": "ClusterIP",
            "selector": labels.selector(model, component),
            "ports": [{"name": "store", "port": wire.MASTER_PORT, "targetPort": "store"}],
        },
    }


def _deployment(
    model: str, component: str, device: ResolvedDevice, settings: MasterSettings, images: ImageSettings
) -> Manifest:
    """Never two at once: their books would differ, and members would join one or the other."""
    metadata = _metadata(model, component)
    volumes = [pod.temporary(), *pod.claims(device.mounts)]
    spec = pod.pod_spec(_container(device, settings), volumes, GRACE_S, images)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": labels.selector(model, component)},
            "strategy": {"type": "Recreate"},
            "template": {
                "metadata": {"labels": metadata["labels"]},
                "spec": {**spec, "automountServiceAccountToken": False},
            },
        },
    }


def _container(device: ResolvedDevice, settings: MasterSettings) -> Manifest:
    """On the image of a stage, but on none of its devices: it moves no payload."""
    arguments = [
        *("--host", "0.0.0.0"),
        *("--port", str(wire.MASTER_PORT)),
        *("--admin-port", str(wire.MASTER_ADMIN_PORT)),
    ]
    return {
        "image": device.image,
        "command": pod.command(device.command, "omni_runtime.connectors.mooncake.master", arguments),
        "env": pod.environment(device.env),
        "ports": [
            {"name": "store", "containerPort": wire.MASTER_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": wire.MASTER_ADMIN_PORT, "protocol": "TCP"},
        ],
        "resources": {"requests": settings.requests, "limits": settings.limits},
        "startupProbe": _probe(period_s=1, failures=120),
        "livenessProbe": _probe(period_s=10, failures=3),
        "readinessProbe": _probe(period_s=2, failures=2),
    }


def _probe(period_s: int, failures: int) -> Manifest:
    http = {"httpGet": {"path": "/health", "port": "metrics"}}
    return {**http, "periodSeconds": period_s, "failureThreshold": failures, "timeoutSeconds": 5}

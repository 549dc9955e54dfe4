"""What the kind cluster looks like: a control plane with an audit log, a worker with folders and a port."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cluster.settings import Settings

VOLUMES_LABEL = "omni.test/volumes"
NODE_PORT = 30080
MODELS_IN_NODE = "/var/lib/omni/models"
AUDIT_IN_NODE = "/var/log/kubernetes/audit"
POLICY_IN_NODE = "/etc/kubernetes/audit-policy.json"


def audit_log(settings: Settings) -> Path:
    return settings.kind / "audit" / "audit.log"


def audit_policy(settings: Settings) -> Path:
    return settings.kind / "audit-policy.json"


def kind_config(settings: Settings) -> dict[str, Any]:
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "networking": {"apiServerAddress": "127.0.0.1", "apiServerPort": settings.kind_api_port},
        "nodes": [_control_plane(settings), _worker(settings)],
    }


def _control_plane(settings: Settings) -> dict[str, Any]:
    return {
        "role": "control-plane",
        "extraMounts": [
            _mount(audit_log(settings).parent, AUDIT_IN_NODE, read_only=False),
            _mount(audit_policy(settings), POLICY_IN_NODE),
        ],
        "kubeadmConfigPatchesJSON6902": [
            {"group": "kubeadm.k8s.io", "version": "v1beta4", "kind": "ClusterConfiguration", "patch": _kubeadm_patch()}
        ],
    }


def _worker(settings: Settings) -> dict[str, Any]:
    return {
        "role": "worker",
        "labels": {VOLUMES_LABEL: "here"},
        "extraMounts": [_mount(settings.venv, str(settings.venv)), _mount(settings.models, MODELS_IN_NODE)],
        "extraPortMappings": [
            {"containerPort": NODE_PORT, "hostPort": settings.kind_node_port, "listenAddress": "127.0.0.1"}
        ],
    }


def _mount(host: Path, node: str, *, read_only: bool = True) -> dict[str, Any]:
    return {"hostPath": str(host), "containerPath": node, "readOnly": read_only}


def _kubeadm_patch() -> str:
    """Turns the API server's audit log on, and lets the controllers keep up with hundreds of models."""
    arguments = {
        "audit-policy-file": POLICY_IN_NODE,
        "audit-log-path": f"{AUDIT_IN_NODE}/audit.log",
        "audit-log-format": "json",
        "audit-log-mode": "blocking",
        "audit-log-maxsize": "4096",
    }
    volumes = [
        {"name": "audit", "hostPath": AUDIT_IN_NODE, "mountPath": AUDIT_IN_NODE, "pathType": "Directory"},
        {"name": "audit-policy", "hostPath": POLICY_IN_NODE, "mountPath": POLICY_IN_NODE, "pathType": "File"}
        | {"readOnly": True},
    ]
    controllers = {"kube-api-qps": "300", "kube-api-burst": "600"}
    return json.dumps(
        [
            *(_append("/apiServer/extraArgs", name, value) for name, value in arguments.items()),
            {"op": "add", "path": "/apiServer/extraVolumes", "value": volumes},
            *(_append("/controllerManager/extraArgs", name, value) for name, value in controllers.items()),
        ]
    )


def _append(path: str, name: str, value: str) -> dict[str, Any]:
    return {"op": "add", "path": f"{path}/-", "value": {"name": name, "value": value}}

"""The read-only volumes of a namespace: the Python environment as claim `venv`, the models as claim `models`.

Restricted pods may not use hostPath, so the folders come as PersistentVolumes. A volume binds one claim and stays
Released when that claim's namespace is deleted, so each namespace has volumes of its own, made anew when needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cluster.kind.config import MODELS_IN_NODE, VOLUMES_LABEL

STORAGE_CLASS = "omni-static"  # no such object exists: nothing provisions, and the default class stays out of it
CAPACITY = "8Gi"


def folders(venv: Path) -> dict[str, str]:
    """Claim name → folder on the worker; the environment is at the place where it was made, as it must be."""
    return {"venv": str(venv), "models": MODELS_IN_NODE}


def volume_name(namespace: str, claim: str) -> str:
    return f"omni-{claim}-{namespace}"


def namespace_object(namespace: str) -> dict[str, Any]:
    """A namespace in which only restricted pods are admitted."""
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": levels}}


def volume(namespace: str, claim: str, path: str) -> dict[str, Any]:
    here = {"key": VOLUMES_LABEL, "operator": "In", "values": ["here"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume_name(namespace, claim)},
        "spec": {
            "capacity": {"storage": CAPACITY},
            "accessModes": ["ReadOnlyMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
            "claimRef": {"namespace": namespace, "name": claim},
            "local": {"path": path},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def claim_object(namespace: str, claim: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "storageClassName": STORAGE_CLASS,
            "volumeName": volume_name(namespace, claim),
            "resources": {"requests": {"storage": CAPACITY}},
        },
    }

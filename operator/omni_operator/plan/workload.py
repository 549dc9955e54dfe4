"""What a Deployment on the server says about itself."""

from dataclasses import dataclass

from omni_operator.objects import Manifest


@dataclass(frozen=True)
class Counts:
    """Pods of one workload: asked for, of the newest template, of that and ready."""

    desired: int
    updated: int
    ready: int
    total: int


def counts_of(deployment: Manifest) -> Counts:
    """Of the template on the server now: counts that the controller made for an older one do not speak about it."""
    status = deployment.get("status") or {}
    return Counts(
        desired=deployment["spec"].get("replicas", 1),
        updated=status.get("updatedReplicas", 0) if is_seen(deployment) else 0,
        ready=status.get("readyReplicas", 0),
        total=status.get("replicas", 0),
    )


def is_seen(deployment: Manifest) -> bool:
    """Whether the Deployment controller has looked at the newest template."""
    observed = (deployment.get("status") or {}).get("observedGeneration", 0)
    return bool(observed >= deployment["metadata"].get("generation", 0))


def is_rolled_out(deployment: Manifest) -> bool:
    """Whether every pod is of the newest template, and there are as many as asked for."""
    counts = counts_of(deployment)
    return is_seen(deployment) and counts.desired == counts.updated == counts.total


def is_available(deployment: Manifest) -> bool:
    counts = counts_of(deployment)
    available = (deployment.get("status") or {}).get("availableReplicas", 0)
    return is_rolled_out(deployment) and counts.ready == available == counts.desired


def condition(manifest: Manifest, kind: str) -> Manifest | None:
    conditions: list[Manifest] = (manifest.get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition["type"] == kind), None)

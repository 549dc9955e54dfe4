"""The conditions of a model: every reason that one can give, and how one keeps the time of its last change."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from omni_contract.api.v1alpha1.status import Condition
from omni_operator.objects import Manifest


class Reason(StrEnum):
    """Why a condition holds or does not; docs/reference/conditions.md explains each."""

    ACCEPTED = "Accepted"
    """The model was read and resolved."""
    INVALID = "Invalid"
    """The model cannot be used as it stands; the message lists every problem."""
    ALL_READY = "AllReady"
    """Every replica is of the current revision and ready."""
    NOT_READY = "NotReady"
    """Some replica is missing, old or not ready; the message says which and why."""
    ASLEEP = "Asleep"
    """Every replica that is missing runs and takes no work: it sleeps, or was told to drain."""
    ALL_SERVED = "AllServed"
    """Every kind of answer that the model has can be given."""
    PARTLY_SERVED = "PartlyServed"
    """Some kinds of answers can be given and others cannot; the message says which, and why."""
    NOT_SERVED = "NotServed"
    """No answer can be given now."""
    NOT_AUTOSCALED = "NotAutoscaled"
    """The model itself says how many replicas there are."""
    LEFT_TO_OTHERS = "LeftToOthers"
    """Whoever scales the Deployments says how many replicas there are."""
    SCALING = "Scaling"
    """Every autoscaler of the model follows its targets."""
    NOT_SCALING = "NotScaling"
    """An autoscaler does not; the message has its own words."""
    SUSPENDED = "Suspended"
    """`spec.suspend` took the stages' replicas away."""
    ROLLING_OUT = "RollingOut"
    """Replicas are being made or replaced."""
    COMPLETE = "Complete"
    """Nothing is left to roll out."""
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """A rollout takes longer than start-up budget and image pull together."""
    BLOCKED = "Blocked"
    """An object cannot be written: the API server refuses it, or one of that name is not ours."""
    NOT_STALLED = "NotStalled"
    """Nothing waits for a person."""


@dataclass(frozen=True)
class Finding:
    """What a condition says now; `holds` is None for unknown."""

    holds: bool | None
    reason: Reason
    message: str

    @property
    def status(self) -> str:
        return "Unknown" if self.holds is None else str(self.holds)


def conditions_of(
    findings: Mapping[str, Finding], before: Manifest, generation: int, now: str
) -> tuple[Condition, ...]:
    """`before` is the status on the server: a condition whose status stays keeps the time of its last change."""
    known = {condition["type"]: condition for condition in before.get("conditions") or []}
    return tuple(
        Condition.model_validate(
            {
                "type": kind,
                "status": finding.status,
                "reason": finding.reason.value,
                "message": finding.message,
                "last_transition_time": _since(known.get(kind), finding, now),
                "observed_generation": generation,
            }
        )
        for kind, finding in findings.items()
    )


def _since(known: Manifest | None, finding: Finding, now: str) -> str:
    if known is not None and known.get("status") == finding.status and known.get("lastTransitionTime"):
        return str(known["lastTransitionTime"])
    return now

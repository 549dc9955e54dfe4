"""Rules about how many replicas there are."""

from omni_contract.api.rules.rule import FieldRule, Rule
from omni_contract.api.v1alpha1 import AutoscalingSpec, FrontendSpec, StageSpec

STAGE, FRONTEND = ("spec", "stages", "[]"), ("spec", "frontend")


def _stage_says_it_once(stage: StageSpec) -> bool:
    return stage.autoscaling is None or "replicas" not in stage.model_fields_set


def _frontend_says_it_once(frontend: FrontendSpec) -> bool:
    """The API server writes the default into what it stores."""
    return frontend.autoscaling is None or frontend.replicas == 1


def _can_use_cpu(stage: StageSpec) -> bool:
    return stage.autoscaling is None or stage.autoscaling.cpu_utilization is None or stage.resources.cpu is not None


def _bounds_fit(autoscaling: AutoscalingSpec) -> bool:
    return autoscaling.min_replicas <= autoscaling.max_replicas


def _bounds(at: tuple[str, ...], whose: str) -> FieldRule:
    return FieldRule(
        at=(*at, "autoscaling"),
        pointer="minReplicas",
        cel="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",
        holds=_bounds_fit,
        message=f"the {whose}'s minReplicas ({{self.minReplicas}}) is above its maxReplicas "
        "({self.maxReplicas}); lower it",
    )


AUTOSCALING_RULES: tuple[Rule, ...] = (
    _bounds(STAGE, "stage"),
    _bounds(FRONTEND, "frontend"),
    FieldRule(
        at=STAGE,
        pointer="autoscaling",
        cel="!has(self.autoscaling) || !has(self.replicas)",
        holds=_stage_says_it_once,
        message='stage "{self.name}" has replicas ({self.replicas}) and autoscaling, but only one of them can decide; '
        "remove replicas, or say autoscaling.minReplicas",
    ),
    FieldRule(
        at=FRONTEND,
        pointer="autoscaling",
        cel="!has(self.autoscaling) || self.replicas == 1",
        holds=_frontend_says_it_once,
        message="the frontend has replicas ({self.replicas}) and autoscaling, but only one of them can decide; "
        "remove replicas, or say autoscaling.minReplicas",
    ),
    FieldRule(
        at=STAGE,
        pointer="autoscaling.cpuUtilization",
        cel="!has(self.autoscaling) || !has(self.autoscaling.cpuUtilization) || "
        "(has(self.resources) && has(self.resources.cpu))",
        holds=_can_use_cpu,
        message='stage "{self.name}" is scaled by its use of resources.cpu, but does not say resources.cpu; add it',
    ),
)

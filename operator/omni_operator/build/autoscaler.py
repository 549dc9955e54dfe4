"""The HorizontalPodAutoscaler of a stage, of a group of stages or of the frontend."""

from collections.abc import Iterator

from omni_contract.api.v1alpha1 import AutoscalingSpec
from omni_contract.resolve import ResolvedModel
from omni_operator import labels
from omni_operator.objects import AUTOSCALER, DEPLOYMENT, Manifest
from omni_operator.plan import names
from omni_operator.plan.scaling import autoscaled


def autoscalers(model: ResolvedModel) -> list[Manifest]:
    """Of all components with a target; what has bounds alone is scaled by others."""
    return [_autoscaler(model.name, name, spec) for name, spec in autoscaled(model).items() if spec.has_target]


def _autoscaler(model: str, component: str, spec: AutoscalingSpec) -> Manifest:
    name = names.component_name(model, component)
    return {
        "apiVersion": AUTOSCALER.api_version,
        "kind": AUTOSCALER.name,
        "metadata": {"name": name, "labels": labels.of_component(model, component)},
        "spec": {
            "scaleTargetRef": {"apiVersion": DEPLOYMENT.api_version, "kind": DEPLOYMENT.name, "name": name},
            "minReplicas": spec.min_replicas,
            "maxReplicas": spec.max_replicas,
            "metrics": list(_metrics(spec)),
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": spec.scale_down_stabilization_seconds}},
        },
    }


def _metrics(spec: AutoscalingSpec) -> Iterator[Manifest]:
    if spec.cpu_utilization is not None:
        target = {"type": "Utilization", "averageUtilization": spec.cpu_utilization}
        yield {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    for metric in spec.pod_metrics:
        wanted = {"type": "AverageValue", "averageValue": metric.average_value}
        yield {"type": "Pods", "pods": {"metric": {"name": metric.name}, "target": wanted}}

"""What the condition ScalingActive says of a model's autoscalers."""

from typing import Any

from omni_contract.api.v1alpha1 import AutoscalingSpec
from omni_operator.plan.conditions import Finding
from omni_operator.plan.scaling import scaling

BY_CPU = AutoscalingSpec(max_replicas=4, cpu_utilization=70)


def autoscaler(**conditions: str) -> dict[str, Any]:
    said = [
        {"type": kind, "status": status, "reason": "FailedGetResourceMetric", "message": "no metrics known for pods"}
        for kind, status in conditions.items()
    ]
    labels = {"serving.omnimodel.dev/component": "talker"}
    return {
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "toy-talker", "labels": labels},
        "status": {"conditions": said},
    }


def told(*children: dict[str, Any], spec: AutoscalingSpec = BY_CPU) -> tuple[bool | None, str]:
    finding: Finding = scaling({"talker": spec}, children)
    return finding.holds, finding.reason


def test_a_model_that_says_its_replicas_itself_has_nothing_to_scale() -> None:
    finding = scaling({}, [])
    assert (finding.holds, finding.reason) == (True, "NotAutoscaled")


def test_bounds_without_a_target_leave_it_to_others() -> None:
    assert told(spec=AutoscalingSpec(max_replicas=4)) == (True, "LeftToOthers")


def test_an_autoscaler_that_works_is_told() -> None:
    assert told(autoscaler(AbleToScale="True", ScalingActive="True")) == (True, "Scaling")


def test_one_that_was_not_looked_at_yet_does_not_scale_yet() -> None:
    assert told() == told(autoscaler()) == (False, "NotScaling")


def test_one_that_does_not_work_is_told_in_its_own_words() -> None:
    finding = scaling({"talker": BY_CPU}, [autoscaler(AbleToScale="True", ScalingActive="False")])
    assert (finding.holds, finding.reason) == (False, "NotScaling")
    assert finding.message == "talker: FailedGetResourceMetric: no metrics known for pods"

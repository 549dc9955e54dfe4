"""Who says how many replicas a workload has: the model, or an autoscaler, to whom the number passes without a jump."""

from collections.abc import Iterable, Mapping

from omni_contract.api.v1alpha1 import AutoscalingSpec
from omni_contract.resolve import ResolvedModel
from omni_contract.wire import names as wire
from omni_operator.objects import AUTOSCALER, DEPLOYMENT, Manifest, kind_of, labels_of
from omni_operator.plan import names
from omni_operator.plan.conditions import Finding, Reason
from omni_operator.plan.workload import condition

NOTHING_SCALES = Finding(True, Reason.NOT_AUTOSCALED, "the model says how many replicas there are")
LEFT_TO_OTHERS = Finding(True, Reason.LEFT_TO_OTHERS, "others say how many replicas there are; no target is given here")


def autoscaled(model: ResolvedModel) -> dict[str, AutoscalingSpec]:
    """By component. The stages of a group say the same."""
    scaled = {names.component_of(model, stage): spec for stage, spec in model.autoscaling.items()}
    frontend = model.frontend.autoscaling
    return scaled if frontend is None else {**scaled, names.FRONTEND: frontend}


def fewest_of(model: ResolvedModel) -> dict[str, int]:
    """Replicas with which Deployments begin, by their names."""
    scaled = autoscaled(model).items()
    return {names.component_name(model.name, component): spec.min_replicas for component, spec in scaled}


def is_left_to_others(child: Manifest) -> bool:
    """A Deployment that we want without saying how many replicas it has."""
    return kind_of(child) is DEPLOYMENT and "replicas" not in child["spec"]


def replicas_now(live: Manifest | None) -> int:
    """0 if there are none, or if the model was suspended."""
    return 0 if live is None else int(live["spec"].get("replicas", 1))


def with_replicas(deployment: Manifest, replicas: int) -> Manifest:
    return {**deployment, "spec": {**deployment["spec"], "replicas": replicas}}


def lent(live: Manifest) -> Manifest:
    """What a second field manager applies before we drop `replicas`.

    The API server would set a field that nobody asks for any more to its default: one replica.
    """
    metadata = {key: live["metadata"][key] for key in ("name", "namespace", "uid")}
    return {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.name,
        "metadata": metadata,
        "spec": {"replicas": replicas_now(live)},
    }


def scaling(scaled: Mapping[str, AutoscalingSpec], children: Iterable[Manifest]) -> Finding:
    """What the autoscalers say of themselves, in their own words."""
    if not scaled:
        return NOTHING_SCALES
    ours = [name for name, spec in scaled.items() if spec.has_target]
    if not ours:
        return LEFT_TO_OTHERS
    there = {labels_of(child).get(wire.LABEL_COMPONENT): child for child in children if kind_of(child) is AUTOSCALER}
    troubles = [f"{name}: {trouble}" for name in ours if (trouble := _trouble(there.get(name)))]
    if troubles:
        return Finding(False, Reason.NOT_SCALING, "; ".join(troubles))
    return Finding(True, Reason.SCALING, f"autoscalers follow the load of {', '.join(ours)}")


def _trouble(autoscaler: Manifest | None) -> str:
    """Empty if it works."""
    if autoscaler is None:
        return "there is no autoscaler yet"
    for kind in ("AbleToScale", "ScalingActive"):
        found = condition(autoscaler, kind)
        if found is None:
            return "the autoscaler has not been looked at yet"
        if found["status"] != "True":
            return f"{found.get('reason', '')}: {found.get('message', '')}"
    return ""

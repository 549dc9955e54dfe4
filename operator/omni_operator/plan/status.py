"""The status of a model, derived from what was observed and from what this pass could and could not do."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from omni_contract.api.v1alpha1.status import Endpoints, OmniModelStatus, OutputStatus, StageStatus
from omni_contract.resolve import ResolvedModel, ResolvedStage
from omni_contract.wire import names as wire
from omni_operator.objects import SERVICE, Manifest, kind_of, labels_of
from omni_operator.plan import names
from omni_operator.plan.causes import Cause, cause_of, rest_of
from omni_operator.plan.conditions import Finding, Reason, conditions_of
from omni_operator.plan.observe import Observed
from omni_operator.plan.outputs import Output, outputs_of
from omni_operator.plan.record import Record
from omni_operator.plan.scaling import autoscaled, scaling
from omni_operator.plan.workload import Counts, condition, counts_of, is_available, is_rolled_out

MESSAGE_LIMIT = 1024
NOTHING = Counts(desired=0, updated=0, ready=0, total=0)
SUSPENDED = Finding(False, Reason.SUSPENDED, "spec.suspend is true")
NO_MASTERS = Finding(True, Reason.ALL_READY, "no connector of the model needs a master of its own")


@dataclass(frozen=True)
class Pass:
    """What one reconcile pass knows when it is about to report."""

    model: ResolvedModel
    record: Record
    revision: str
    replicas: Mapping[str, int | None]
    """By component; None where others say it."""
    is_settled: bool
    """Nothing had to be written: the children on the server are the desired ones."""
    obstacles: Sequence[str] = ()
    """What keeps children from being written; nothing but a person or garbage collection ends it."""


@dataclass(frozen=True)
class _Component:
    """A stage, the frontend or the master of a connector, as seen."""

    name: str
    counts: Counts
    is_available: bool = False
    is_rolling: bool = True
    is_overdue: bool = False
    cause: Cause | None = None

    @property
    def sentence(self) -> str:
        """Why it is not available; empty if it is."""
        if self.is_available:
            return ""
        return self.cause.message if self.cause else f"{self.counts.ready} of {self.counts.desired} replicas are ready"

    @property
    def is_stage(self) -> bool:
        return _is_stage(self.name)

    @property
    def is_in_trouble(self) -> bool:
        return self.cause is not None and self.cause.is_fault

    @property
    def is_asleep(self) -> bool:
        return self.cause is not None and not self.cause.is_fault


def status_of(observed: Observed, done: Pass, now: str) -> OmniModelStatus:
    """`now` (RFC 3339) becomes the transition time of conditions that changed."""
    components = [_component(observed, done, name) for name in done.replicas]
    by_name = {component.name: component for component in components}
    stages = [(stage, by_name[names.component_of(done.model, stage.name)]) for stage in done.model.stages]
    outputs = outputs_of(done.model, {component.name for component in components if component.counts.ready})
    findings = _findings(observed, done, components, _degradation(outputs, by_name, observed.owner.is_suspended))
    return OmniModelStatus(
        observed_generation=observed.generation,
        phase=_phase(observed, components, findings),
        conditions=conditions_of(findings, observed.status, observed.generation, now),
        stages=tuple(_stage_status(stage, seen, done) for stage, seen in stages),
        outputs=tuple(_output_status(output, by_name) for output in outputs),
        stages_ready=f"{sum(seen.is_available for _, seen in stages)}/{len(stages)}",
        endpoints=_endpoints(observed),
        revision=done.revision,
    )


def rejected_status(observed: Observed, problems: str, now: str) -> OmniModelStatus:
    """Of a model that cannot be used as it stands. What runs from before goes on running and being reported."""
    before = read_status(observed.status) or OmniModelStatus()
    invalid = Finding(False, Reason.INVALID, _short(problems))
    findings = {
        "Accepted": invalid,
        "ConnectorsReady": Finding(None, Reason.INVALID, "the model was not accepted"),
        "StagesReady": Finding(None, Reason.INVALID, "the model was not accepted"),
        "FrontendReady": Finding(None, Reason.INVALID, "the model was not accepted"),
        "Degraded": Finding(None, Reason.INVALID, "the model was not accepted"),
        "ScalingActive": Finding(None, Reason.INVALID, "the model was not accepted"),
        "Progressing": Finding(False, Reason.INVALID, "nothing is changed until the model is corrected"),
        "Stalled": Finding(True, Reason.INVALID, _short(problems)),
        "Ready": invalid,
    }
    return before.model_copy(
        update={
            "observed_generation": observed.generation,
            "phase": "Invalid",
            "conditions": conditions_of(findings, observed.status, observed.generation, now),
        }
    )


def read_status(status: Manifest) -> OmniModelStatus | None:
    """The status on the server; None if there is none or another version of the operator wrote it."""
    try:
        return OmniModelStatus.model_validate(status) if status else None
    except ValidationError:
        return None


def _component(observed: Observed, done: Pass, name: str) -> _Component:
    deployment, desired = observed.deployments.get(name), done.replicas[name]
    if deployment is None:
        return _Component(name, replace(NOTHING, desired=desired or 0))
    counts = counts_of(deployment)
    is_done = is_available(deployment)
    progress = condition(deployment, "Progressing") or {}
    return _Component(
        name,
        counts if desired is None else replace(counts, desired=desired),
        is_available=is_done and done.is_settled,
        is_rolling=not is_done
        and (not is_rolled_out(deployment) or progress.get("reason") != "NewReplicaSetAvailable"),
        is_overdue=progress.get("reason") == "ProgressDeadlineExceeded",
        cause=None if is_done else _cause(observed, name, deployment),
    )


def _is_stage(component: str) -> bool:
    return component != names.FRONTEND and not names.is_master(component)


def _cause(observed: Observed, name: str, deployment: Manifest) -> Cause | None:
    pods = observed.pods_of(name)
    fault = cause_of(deployment, pods, observed.events)
    return rest_of(pods) if fault is None and _is_stage(name) else fault


def _findings(
    observed: Observed, done: Pass, components: Sequence[_Component], degraded: Finding
) -> dict[str, Finding]:
    masters = [component for component in components if names.is_master(component.name)]
    stages = [component for component in components if component.is_stage]
    frontends = [component for component in components if component.name == names.FRONTEND]
    is_suspended = observed.owner.is_suspended
    findings = {
        "Accepted": Finding(True, Reason.ACCEPTED, "the model was read and resolved"),
        "ConnectorsReady": _readiness(masters, is_suspended) if masters else NO_MASTERS,
        "StagesReady": _readiness(stages, is_suspended),
        "FrontendReady": _readiness(frontends, is_suspended=False),
        "Degraded": degraded,
        "ScalingActive": SUSPENDED if is_suspended else scaling(autoscaled(done.model), observed.owned_children),
        "Progressing": _progress(done, components),
        "Stalled": _stall(done, components),
    }
    return {**findings, "Ready": _ready(done, findings)}


def _readiness(components: Iterable[_Component], is_suspended: bool) -> Finding:
    if is_suspended:
        return SUSPENDED
    waiting = [component for component in components if not component.is_available]
    if not waiting:
        return Finding(True, Reason.ALL_READY, "every replica is of the current revision and ready")
    sentences = "; ".join(f"{component.name}: {component.sentence}" for component in waiting)
    reason = Reason.ASLEEP if all(component.is_asleep for component in waiting) else Reason.NOT_READY
    return Finding(False, reason, _short(sentences))


def _degradation(outputs: Iterable[Output], seen: Mapping[str, _Component], is_suspended: bool) -> Finding:
    """Whether clients get less than the model offers, whatever the replicas are told to be."""
    if is_suspended:
        return SUSPENDED
    served = [output.modality for output in outputs if output.is_servable]
    lost = [output for output in outputs if not output.is_servable]
    if not lost:
        return Finding(False, Reason.ALL_SERVED, f"{' and '.join(served)} can be served")
    losses = "; ".join(f"no {output.modality}: {_why_missing(output, seen)}" for output in lost)
    if not served:
        return Finding(True, Reason.NOT_SERVED, _short(losses))
    return Finding(True, Reason.PARTLY_SERVED, _short(f"{' and '.join(served)} can be served; {losses}"))


def _why_missing(output: Output, seen: Mapping[str, _Component]) -> str:
    return "; ".join(f"{name}: {seen[name].sentence or 'no replica is ready'}" for name in output.missing)


def _output_status(output: Output, seen: Mapping[str, _Component]) -> OutputStatus:
    return OutputStatus(
        modality=output.modality, servable=output.is_servable, message=_short(_why_missing(output, seen))
    )


def _progress(done: Pass, components: Iterable[_Component]) -> Finding:
    rolling = [component.name for component in components if component.is_rolling]
    if done.is_settled and not rolling:
        return Finding(False, Reason.COMPLETE, "every replica is of the current revision")
    if any(component.is_overdue for component in components):
        return Finding(False, Reason.DEADLINE_EXCEEDED, "a rollout takes longer than its deadline")
    return Finding(True, Reason.ROLLING_OUT, "in progress: " + (", ".join(rolling) or "objects are being written"))


def _stall(done: Pass, components: Iterable[_Component]) -> Finding:
    if done.obstacles:
        return Finding(True, Reason.BLOCKED, _short("; ".join(done.obstacles)))
    overdue = [component for component in components if component.is_overdue]
    if overdue:
        sentences = "; ".join(f"{component.name}: {component.sentence}" for component in overdue)
        return Finding(True, Reason.DEADLINE_EXCEEDED, _short(sentences))
    return Finding(False, Reason.NOT_STALLED, "nothing waits for a person")


def _ready(done: Pass, findings: Mapping[str, Finding]) -> Finding:
    """Only at the current generation, with everything written and every replica new and ready."""
    for name in ("ConnectorsReady", "StagesReady", "FrontendReady"):
        if not findings[name].holds:
            return findings[name]
    if not done.is_settled:
        return Finding(False, Reason.ROLLING_OUT, "objects are being written")
    return Finding(True, Reason.ALL_READY, "the model answers requests")


def _phase(observed: Observed, components: Sequence[_Component], findings: Mapping[str, Finding]) -> str:
    """One word, by a fixed order of precedence, so that it never flickers between two that hold at once."""
    if findings["Stalled"].holds:
        return "Stalled"
    if observed.owner.is_suspended:
        return "Suspended"
    if findings["Ready"].holds:
        return "Ready"
    if findings["Progressing"].holds:
        return "Progressing"
    if any(component.is_in_trouble for component in components):
        return "Degraded"
    return "Asleep" if findings["StagesReady"].reason is Reason.ASLEEP else "Progressing"


def _stage_status(stage: ResolvedStage, seen: _Component, done: Pass) -> StageStatus:
    """Stages that share their pods share what is seen of them."""
    return StageStatus(
        name=stage.name,
        kind=stage.engine.kind,
        revision=done.record.units[seen.name].revision,
        desired=seen.counts.desired,
        updated=seen.counts.updated,
        ready=seen.counts.ready,
        message=_short(seen.sentence),
        hint=seen.cause.hint if seen.cause else "",
    )


def _endpoints(observed: Observed) -> Endpoints:
    """Known as soon as the frontend's Service is there."""
    services = [child for child in observed.owned_children if kind_of(child) is SERVICE]
    for service in services:
        if labels_of(service).get(wire.LABEL_COMPONENT) == names.FRONTEND:
            metadata, port = service["metadata"], service["spec"]["ports"][0]
            url = f"http://{metadata['name']}.{metadata['namespace']}.svc:{port['port']}/v1"
            return Endpoints(url=url, node_port=port.get("nodePort"))
    return Endpoints()


def _short(text: str) -> str:
    return text if len(text) <= MESSAGE_LIMIT else f"{text[: MESSAGE_LIMIT - 1]}…"

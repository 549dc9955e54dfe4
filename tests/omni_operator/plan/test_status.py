"""The status of a model, derived from what was observed."""

from typing import Any

import pytest

from omni_contract.api.v1alpha1.status import OmniModelStatus, StageStatus
from omni_operator.objects import DEPLOYMENT, Manifest, kind_of
from omni_operator.plan.conditions import Reason
from omni_operator.plan.observe import Observed
from omni_operator.plan.status import MESSAGE_LIMIT, Pass, read_status, rejected_status, status_of
from tests.support.fake_kube import rolled_out
from tests.support.operator_models import a_model, a_record, a_spec, a_stage, children_of, resolved

NOW = "2026-11-30T13:00:00Z"
REPLICAS = {"encoder": 1, "denoiser": 1, "decoder": 1, "frontend": 1}


def observed(model: Manifest | None = None, pods: list[Manifest] | None = None, **statuses: Any) -> Observed:
    """A model whose Deployments are all rolled out, but for those whose status is given by component."""
    model = model or a_model()
    children = children_of(model)
    for child in children:
        child["metadata"] |= {"uid": child["metadata"]["name"], "generation": 1}
        if kind_of(child) is DEPLOYMENT:
            component = child["metadata"]["labels"]["serving.omnimodel.dev/component"]
            child["status"] = {**rolled_out(child), **statuses.get(component, {})}
    return Observed(model, children, pods or [])


def a_pass(**changes: Any) -> Pass:
    model = a_model()
    fields = {"model": resolved(model), "record": a_record(model), "revision": "toy-1", "replicas": REPLICAS}
    return Pass(**{**fields, "is_settled": True, **changes})


def condition(status: OmniModelStatus, kind: str) -> tuple[str, str]:
    found = next(one for one in status.conditions if one.type == kind)
    return found.status, found.reason


def stage(status: OmniModelStatus, name: str) -> StageStatus:
    return next(one for one in status.stages if one.name == name)


NOT_READY = {"readyReplicas": 0, "availableReplicas": 0}
STARTING = {**NOT_READY, "conditions": [{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}]}
OVERDUE = {
    **NOT_READY,
    "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}],
}


def test_every_condition_is_always_there() -> None:
    kinds = ["Accepted", "ConnectorsReady", "StagesReady", "FrontendReady", "Degraded"]
    kinds += ["ScalingActive", "Progressing", "Stalled", "Ready"]
    for status in (
        status_of(observed(), a_pass(), NOW),
        status_of(observed(denoiser=STARTING), a_pass(), NOW),
        status_of(Observed(a_model()), a_pass(is_settled=False), NOW),
        rejected_status(observed(), "bad", NOW),
    ):
        assert [one.type for one in status.conditions] == kinds


def test_every_reason_is_documented() -> None:
    assert all(one.reason in set(Reason) for one in status_of(observed(), a_pass(), NOW).conditions)


def test_a_model_whose_replicas_are_all_there_is_ready() -> None:
    status = status_of(observed(), a_pass(), NOW)
    assert (status.phase, condition(status, "Ready"), status.stages_ready) == ("Ready", ("True", "AllReady"), "3/3")


@pytest.mark.parametrize("component", REPLICAS)
def test_one_component_that_is_not_ready_keeps_the_model_from_being_ready(component: str) -> None:
    status = status_of(observed(**{component: NOT_READY}), a_pass(), NOW)
    assert condition(status, "Ready") == ("False", "NotReady")
    assert condition(status, "FrontendReady")[0] == str(component != "frontend")
    assert condition(status, "StagesReady")[0] == str(component == "frontend")


@pytest.mark.case("operator:C01")
@pytest.mark.parametrize(
    "unfinished",
    [
        {"observedGeneration": 0},
        {"updatedReplicas": 0},
        {"replicas": 2},
        {"availableReplicas": 0},
    ],
)
def test_ready_needs_every_replica_new_and_available(unfinished: dict[str, int]) -> None:
    status = status_of(observed(denoiser=unfinished), a_pass(), NOW)
    assert condition(status, "Ready")[0] == "False"
    assert stage(status, "denoiser").message


@pytest.mark.case("operator:A08")
def test_counts_come_from_the_deployment_and_not_from_the_spec() -> None:
    denoiser = stage(status_of(observed(denoiser=NOT_READY), a_pass(), NOW), "denoiser")
    assert (denoiser.desired, denoiser.updated, denoiser.ready) == (1, 1, 0)


def test_a_stage_that_loads_is_progressing_and_not_degraded() -> None:
    status = status_of(observed(denoiser=STARTING), a_pass(), NOW)
    assert status.phase == "Progressing"
    assert condition(status, "Progressing") == ("True", "RollingOut")
    assert stage(status, "denoiser").message == "0 of 1 replicas are ready"


@pytest.mark.case("operator:A09")
def test_a_model_that_is_ready_does_not_progress_although_the_controller_has_yet_to_say_so() -> None:
    late = {"conditions": [{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}]}
    status = status_of(observed(denoiser=late), a_pass(), NOW)
    assert (condition(status, "Ready")[0], condition(status, "Progressing")[0]) == ("True", "False")
    assert status == status_of(observed(), a_pass(), NOW)


def test_a_pod_that_cannot_be_placed_is_quoted_in_the_stage_and_in_the_conditions() -> None:
    words = "0/8 nodes are available: 2 Insufficient nvidia.com/gpu."
    pod = {
        "kind": "Pod",
        "metadata": {"name": "toy-denoiser-1", "labels": {"serving.omnimodel.dev/component": "denoiser"}},
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": words}]},
    }
    status = status_of(observed(denoiser=NOT_READY, pods=[pod]), a_pass(), NOW)
    assert words in stage(status, "denoiser").message
    assert "free devices" in stage(status, "denoiser").hint
    assert words in next(one for one in status.conditions if one.type == "Ready").message
    assert status.phase == "Degraded"


def test_a_rollout_over_its_deadline_stalls_the_model() -> None:
    status = status_of(observed(denoiser=OVERDUE), a_pass(), NOW)
    assert condition(status, "Progressing") == ("False", "DeadlineExceeded")
    assert condition(status, "Stalled") == ("True", "DeadlineExceeded")
    assert status.phase == "Stalled"


def test_an_obstacle_stalls_the_model() -> None:
    status = status_of(observed(), a_pass(is_settled=False, obstacles=["Service x is not ours"]), NOW)
    assert condition(status, "Stalled") == ("True", "Blocked")
    assert condition(status, "Ready")[0] == "False"


def test_the_node_port_is_reported() -> None:
    seen = observed()
    service = next(
        one for one in seen.children if one["metadata"]["name"] == "toy-frontend" and one["kind"] == "Service"
    )
    service["spec"]["ports"][0]["nodePort"] = 30080
    assert status_of(seen, a_pass(), NOW).endpoints.node_port == 30080


@pytest.mark.case("operator:A24")
def test_the_status_does_not_grow_with_the_words_of_others() -> None:
    status = rejected_status(observed(), "x" * 100_000, NOW)
    assert all(len(one.message) <= MESSAGE_LIMIT for one in status.conditions)
    assert len(status.model_dump_json()) < 32 * 1024


@pytest.mark.case("operator:A07")
@pytest.mark.case("operator:Q11")
def test_a_status_is_read_back_as_it_was_written() -> None:
    status = status_of(observed(), a_pass(), NOW)
    assert read_status(status.model_dump(mode="json", by_alias=True, exclude_none=True)) == status


def test_a_status_of_another_version_counts_as_none() -> None:
    assert read_status({"somethingNew": 1}) is None
    assert read_status({}) is None


def test_a_rejected_model_still_reports_what_runs() -> None:
    before = status_of(observed(), a_pass(), NOW).model_dump(mode="json", by_alias=True, exclude_none=True)
    model = {**a_model(generation=2), "status": before}
    status = rejected_status(Observed(model), "spec.stages[0]: no", NOW)
    assert status.stages_ready == "3/3"
    assert status.observed_generation == 2
    assert condition(status, "Accepted") == ("False", "Invalid")


def sleeping(component: str) -> Manifest:
    main = {
        "name": "main",
        "ready": False,
        "started": True,
        "state": {"running": {"startedAt": "2026-11-30T12:00:00Z"}},
    }
    return {
        "kind": "Pod",
        "metadata": {"name": f"toy-{component}-1", "labels": {"serving.omnimodel.dev/component": component}},
        "status": {
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-30T12:30:00Z"}],
            "containerStatuses": [main],
        },
    }


def test_a_stage_that_sleeps_is_not_ready_and_not_degraded() -> None:
    status = status_of(observed(denoiser=NOT_READY, pods=[sleeping("denoiser")]), a_pass(), NOW)
    assert (status.phase, condition(status, "Ready")) == ("Asleep", ("False", "Asleep"))
    assert condition(status, "Stalled")[0] == "False"
    assert "it sleeps" in stage(status, "denoiser").message
    assert "omni control wake" in stage(status, "denoiser").hint


def test_a_fault_beside_a_stage_that_sleeps_is_what_counts() -> None:
    evicted = {
        "kind": "Pod",
        "metadata": {"name": "toy-decoder-1", "labels": {"serving.omnimodel.dev/component": "decoder"}},
        "status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."},
    }
    seen = observed(denoiser=NOT_READY, decoder=NOT_READY, pods=[sleeping("denoiser"), evicted])
    status = status_of(seen, a_pass(), NOW)
    assert (status.phase, condition(status, "Ready")) == ("Degraded", ("False", "NotReady"))


def test_a_frontend_never_sleeps() -> None:
    status = status_of(observed(frontend=NOT_READY, pods=[sleeping("frontend")]), a_pass(), NOW)
    assert condition(status, "FrontendReady") == ("False", "NotReady")


def with_master(**seen: Any) -> OmniModelStatus:
    """Of a model with a managed store; what differs in the status of the master's Deployment."""
    spec = a_spec(connectors=[{"name": "store", "mooncakeStore": {"managed": True}}])
    model = a_model({**spec, "edges": [{**edge, "connector": "store"} for edge in spec["edges"]]})
    replicas = {"connector-store-master": 1, **REPLICAS}
    done = a_pass(model=resolved(model), record=a_record(model), replicas=replicas)
    return status_of(observed(model, **{"connector-store-master": seen}), done, NOW)


def test_a_model_is_ready_only_with_the_master_of_its_store() -> None:
    assert condition(with_master(), "ConnectorsReady") == ("True", "AllReady")
    assert condition(with_master(), "Ready")[0] == "True"
    away = with_master(**NOT_READY)
    assert condition(away, "ConnectorsReady") == condition(away, "Ready") == ("False", "NotReady")
    assert condition(away, "StagesReady")[0] == "True"


def test_a_master_is_no_stage() -> None:
    assert with_master().stages_ready == "3/3"
    assert "connector-store-master" not in [one.name for one in with_master().stages]


def test_a_model_without_a_master_has_ready_connectors() -> None:
    status = status_of(observed(), a_pass(), NOW)
    assert condition(status, "ConnectorsReady") == ("True", "AllReady")


def test_each_stage_of_a_pod_is_told_what_is_seen_of_the_pod() -> None:
    model = a_model(a_spec(placement={"colocate": [["denoiser", "decoder"]]}))
    group = "colocation-with-denoiser"
    done = a_pass(model=resolved(model), record=a_record(model), replicas={"encoder": 1, group: 1, "frontend": 1})
    ready = status_of(observed(model), done, NOW)
    assert (ready.phase, ready.stages_ready) == ("Ready", "3/3")
    assert [one.name for one in ready.stages] == ["encoder", "denoiser", "decoder"]
    away = status_of(observed(model, **{group: NOT_READY}), done, NOW)
    assert away.stages_ready == "1/3"
    assert stage(away, "denoiser").message == stage(away, "decoder").message == "0 of 1 replicas are ready"


def talking(*away: str, suspended: bool = False) -> OmniModelStatus:
    """Of a model that writes and speaks, without a ready replica of what is away."""
    thinker = a_stage("thinker", output={"modality": "text"})
    spec = a_spec(thinker, a_stage("vocoder", output={"modality": "audio"}), suspend=suspended)
    model = a_model(spec)
    done = a_pass(model=resolved(model), record=a_record(model), replicas={"thinker": 1, "vocoder": 1, "frontend": 1})
    return status_of(observed(model, **dict.fromkeys(away, NOT_READY)), done, NOW)


def test_a_model_that_gives_every_answer_is_not_degraded() -> None:
    status = talking()
    assert condition(status, "Degraded") == ("False", "AllServed")
    assert [(one.modality, one.servable, one.message) for one in status.outputs] == [
        ("text", True, ""),
        ("audio", True, ""),
    ]


def test_a_model_that_lost_its_voice_says_what_goes_on_and_what_does_not() -> None:
    status = talking("vocoder")
    assert condition(status, "Degraded") == ("True", "PartlyServed")
    said = next(one.message for one in status.conditions if one.type == "Degraded")
    assert said == "text can be served; no audio: vocoder: 0 of 1 replicas are ready"
    assert [(one.modality, one.servable) for one in status.outputs] == [("text", True), ("audio", False)]


@pytest.mark.parametrize("away", ["thinker", "frontend"])
def test_a_model_that_can_answer_nothing_says_so(away: str) -> None:
    assert condition(talking(away), "Degraded") == ("True", "NotServed")


def test_one_replica_of_each_stage_is_enough_for_every_answer() -> None:
    status = status_of(observed(denoiser={"readyReplicas": 1, "availableReplicas": 0}), a_pass(), NOW)
    assert condition(status, "Ready")[0] == "False"
    assert condition(status, "Degraded") == ("False", "AllServed")


def test_a_suspended_model_is_not_degraded() -> None:
    assert condition(talking("thinker", "vocoder", suspended=True), "Degraded") == ("False", "Suspended")

"""Why a stage is not ready, told from its pods and its Deployment in the words of those who refuse."""

from typing import Any

import pytest

from omni_operator.objects import Manifest
from omni_operator.plan import causes, ends
from omni_operator.plan.causes import Cause, cause_of, rest_of

DEPLOYMENT: Manifest = {
    "kind": "Deployment",
    "metadata": {"name": "toy-denoiser", "generation": 1},
    "spec": {"replicas": 1},
    "status": {"observedGeneration": 1},
}


def a_pod(name: str = "toy-denoiser-abc", created: str = "2026-11-30T12:00:00Z", **status: Any) -> Manifest:
    return {"kind": "Pod", "metadata": {"name": name, "creationTimestamp": created}, "status": status}


def unscheduled(message: str) -> Manifest:
    return a_pod(
        conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    )


def waiting(reason: str, message: str = "", **status: Any) -> Manifest:
    state = {"waiting": {"reason": reason, "message": message}}
    return a_pod(containerStatuses=[{"name": "main", "ready": False, "state": state, **status}])


def test_a_stage_without_trouble_has_no_cause() -> None:
    assert (
        cause_of(DEPLOYMENT, [a_pod(phase="Running", containerStatuses=[{"name": "main", "state": {"running": {}}}])])
        is None
    )
    assert cause_of(None, []) is None


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("0/8 nodes are available: 2 Insufficient nvidia.com/gpu.", causes.FREE_DEVICES),
        ('persistentvolumeclaim "models" not found', causes.MAKE_CLAIM),
        ("0/8 nodes are available: 8 node(s) didn't match Pod's node affinity/selector.", causes.CHECK_POOL),
    ],
)
def test_the_scheduler_is_quoted(message: str, hint: str) -> None:
    assert cause_of(DEPLOYMENT, [unscheduled(message)]) == Cause(f"Pod toy-denoiser-abc: {message}", hint)


@pytest.mark.parametrize(
    ("reason", "hint"),
    [("ImagePullBackOff", causes.CHECK_IMAGE), ("CreateContainerConfigError", causes.CHECK_CONTAINER)],
)
def test_the_kubelet_is_quoted(reason: str, hint: str) -> None:
    cause = cause_of(DEPLOYMENT, [waiting(reason, "in its own words")])
    assert cause == Cause(f"Pod toy-denoiser-abc: {reason}: in its own words", hint)


SECRET = {"secretName": "toy-tls", "items": [{"key": "tls.crt"}, {"key": "tls.key"}, {"key": "ca.crt"}]}


def mount_failure(message: str, pod: str = "toy-denoiser-abc", version: int = 7) -> Manifest:
    return {
        "kind": "Event",
        "metadata": {"name": f"{pod}.{version}", "namespace": "team", "resourceVersion": str(version)},
        "involvedObject": {"kind": "Pod", "name": pod},
        "reason": "FailedMount",
        "message": f'MountVolume.SetUp failed for volume "{message}',
    }


def waiting_for(volume: Manifest, reason: str = "ContainerCreating") -> Manifest:
    return {**waiting(reason), "spec": {"volumes": [{"name": "tmp", "emptyDir": {}}, volume]}}


@pytest.mark.case("operator:G12")
@pytest.mark.parametrize("fault", ['secret "toy-tls" not found', "references non-existent secret key: ca.crt"])
def test_a_pod_that_waits_for_a_secret_says_which_and_what_it_must_hold(fault: str) -> None:
    pod = waiting_for({"name": "tls", "secret": SECRET})
    assert cause_of(DEPLOYMENT, [pod], [mount_failure(f'tls" : {fault}')]) == Cause(
        f'Pod toy-denoiser-abc: FailedMount: MountVolume.SetUp failed for volume "tls" : {fault}',
        'create Secret "toy-tls" in the model\'s namespace with the keys tls.crt, tls.key, ca.crt; the pod goes on by '
        "itself",
    )


def test_a_secret_of_which_all_keys_are_mounted_may_hold_anything() -> None:
    pod = waiting_for({"name": "api-keys", "secret": {"secretName": "keys"}})
    cause = cause_of(DEPLOYMENT, [pod], [mount_failure('api-keys" : secret "keys" not found')])
    assert cause is not None
    assert cause.hint == 'create Secret "keys" in the model\'s namespace; the pod goes on by itself'


def test_the_newest_event_about_the_pod_itself_counts() -> None:
    pod = waiting_for({"name": "claim-0", "persistentVolumeClaim": {"claimName": "models"}})
    events = [
        mount_failure('claim-0" : newest', version=10),
        mount_failure('claim-0" : older', version=9),
        mount_failure("claim-0\" : another pod's", pod="toy-denoiser-xyz", version=11),
    ]
    cause = cause_of(DEPLOYMENT, [pod], events)
    assert cause is not None
    assert cause.message.endswith('volume "claim-0" : newest')
    assert cause.hint == causes.CHECK_CONTAINER


def test_a_mount_that_failed_before_the_container_ran_is_no_trouble() -> None:
    running = {**a_pod(containerStatuses=[{"name": "main", "ready": True, "state": {"running": {}}}]), "spec": {}}
    assert cause_of(DEPLOYMENT, [running], [mount_failure('tls" : secret "toy-tls" not found')]) is None


def test_a_crash_loop_gives_the_last_sentence_of_the_log() -> None:
    ended = {"exitCode": 77, "reason": "Error", "message": "INFO loading\nERROR stage denoiser: no such folder\n\n"}
    cause = cause_of(DEPLOYMENT, [waiting("CrashLoopBackOff", lastState={"terminated": ended})])
    assert cause is not None
    assert cause.message == "Pod toy-denoiser-abc: exited with status 77: ERROR stage denoiser: no such folder"
    assert "kubectl logs toy-denoiser-abc --previous" in cause.hint


def test_too_little_memory_is_named() -> None:
    ended = {"exitCode": 137, "reason": "OOMKilled"}
    cause = cause_of(DEPLOYMENT, [waiting("CrashLoopBackOff", lastState={"terminated": ended})])
    assert cause is not None
    assert "OOMKilled" in cause.message
    assert cause.hint == ends.MORE_MEMORY


def test_a_container_that_came_back_after_a_crash_is_no_trouble() -> None:
    status = {"name": "main", "ready": True, "lastState": {"terminated": {"exitCode": 1}}, "state": {"running": {}}}
    assert cause_of(DEPLOYMENT, [a_pod(containerStatuses=[status])]) is None


@pytest.mark.case("operator:E07")
def test_an_evicted_pod_says_why() -> None:
    cause = cause_of(DEPLOYMENT, [a_pod(phase="Failed", reason="Evicted", message="The node was low on memory.")])
    assert cause is not None
    assert cause.message == "Pod toy-denoiser-abc: Evicted: The node was low on memory."


@pytest.mark.case("operator:E05")
def test_pods_that_may_not_be_created_are_explained() -> None:
    message = 'pods "toy-denoiser-abc" is forbidden: exceeded quota: gpus'
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    deployment = {**DEPLOYMENT, "status": {"observedGeneration": 1, "conditions": [condition]}}
    assert cause_of(deployment, []) == Cause(f"Deployment toy-denoiser: {message}", causes.CHECK_QUOTA)


def test_the_newest_pod_speaks() -> None:
    old = a_pod("old", "2026-11-30T12:00:00Z", phase="Failed", reason="Evicted", message="old")
    new = a_pod("new", "2026-11-30T13:00:00Z", phase="Failed", reason="Evicted", message="new")
    cause = cause_of(DEPLOYMENT, [old, new])
    assert cause is not None
    assert cause.message.startswith("Pod new:")


def test_a_pod_that_leaves_has_no_say() -> None:
    pod = unscheduled("no room")
    pod["metadata"]["deletionTimestamp"] = "2026-11-30T12:00:00Z"
    assert cause_of(DEPLOYMENT, [pod]) is None


CRASHED_ONCE = {"lastState": {"terminated": {"exitCode": 4, "finishedAt": "2026-11-30T12:30:00Z"}}}


def a_replica(ready_since: str, ready: bool = False, **status: Any) -> Manifest:
    """Its process runs since 13:00, and was ready or not ready since the given time."""
    main = {
        "name": "main",
        "ready": ready,
        "started": True,
        "state": {"running": {"startedAt": "2026-11-30T13:00:00Z"}},
    }
    return a_pod(
        conditions=[{"type": "Ready", "status": str(ready), "lastTransitionTime": ready_since}],
        containerStatuses=[{**main, **status}],
    )


ASLEEP = a_replica(ready_since="2026-11-30T14:00:00Z")


def test_a_replica_that_was_ready_and_takes_no_work_now_is_no_fault() -> None:
    cause = rest_of([ASLEEP])
    assert cause is not None
    assert not cause.is_fault
    assert cause.message == "Pod toy-denoiser-abc: runs, but takes no work: it sleeps, or was told to drain"
    assert "omni control wake" in cause.hint
    assert cause_of(DEPLOYMENT, [ASLEEP]) is None


def test_what_a_sleeping_replica_died_of_before_it_slept_is_forgotten() -> None:
    assert cause_of(DEPLOYMENT, [a_replica("2026-11-30T14:00:00Z", **CRASHED_ONCE)]) is None


@pytest.mark.parametrize(
    "pod",
    [
        a_replica("2026-11-30T12:30:00Z"),
        a_replica("2026-11-30T14:00:00Z", ready=True),
        a_replica("2026-11-30T14:00:00Z", started=False),
        a_replica("2026-11-30T14:00:00Z", state={"waiting": {"reason": "CrashLoopBackOff"}}),
        a_replica("2026-11-30T14:00:00Z", name="sidecar"),
        a_pod(),
    ],
    ids=["not ready since before its process began", "ready", "loading", "dead", "another container", "new"],
)
def test_a_replica_that_does_not_sleep_is_not_said_to(pod: Manifest) -> None:
    assert rest_of([pod]) is None

"""Why a workload has fewer ready pods than it should, in the words of whoever refuses: scheduler, kubelet, quota."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from omni_operator.objects import Manifest
from omni_operator.plan.ends import describe_end, hint_about
from omni_operator.plan.names import CONTAINER
from omni_operator.plan.workload import condition, is_rolled_out


@dataclass(frozen=True)
class Cause:
    """`message` names the object and repeats what was said about it; `hint` says what to do."""

    message: str
    hint: str = ""
    is_fault: bool = True
    """False: somebody wants it so."""


IMAGE_FAULTS = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
CONTAINER_FAULTS = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}

PREPARING = {"ContainerCreating", "PodInitializing"}

VOLUME = re.compile(r'for volume "([^"]+)"')

CHECK_IMAGE = "check the image's name in the accelerator profile and the pull secrets"
CHECK_CONTAINER = "check what the pod refers to: Secrets, ConfigMaps, claims, commands"
MAKE_CLAIM = "create the PersistentVolumeClaim in the model's namespace"
FREE_DEVICES = "free devices of the pool, add nodes, or lower replicas or accelerator.count"
CHECK_POOL = "check the pool's node selector and tolerations against the nodes"
CHECK_QUOTA = "check quotas, limit ranges and admission rules of the namespace"
WAKE = "it goes on once it is woken: omni control wake, over a forwarded port"


def cause_of(deployment: Manifest | None, pods: Iterable[Manifest], events: Iterable[Manifest] = ()) -> Cause | None:
    """The gravest one that is known; None while everything goes its way. `events` are about the pods."""
    if deployment is None:
        return None
    told = list(events)
    causes = [cause for pod in _present(pods) if (cause := _of_pod(pod) or _of_volumes(pod, told))]
    return next(iter(causes), None) or _of_deployment(deployment)


def rest_of(pods: Iterable[Manifest]) -> Cause | None:
    """A replica that was ready since its process started, lives, and takes no work any more; of stages only.

    The process tells the kubelet so itself, and the kubelet hands on no more than that.
    """
    resting = next((pod for pod in _present(pods) if _rests(pod)), None)
    if resting is None:
        return None
    return Cause(_about(resting, "runs, but takes no work: it sleeps, or was told to drain"), WAKE, is_fault=False)


def _rests(pod: Manifest) -> bool:
    ready = condition(pod, "Ready")
    main = next((status for status in _containers(pod) if status["name"] == CONTAINER), None)
    if ready is None or main is None or ready["status"] != "False" or main.get("ready") or not main.get("started"):
        return False
    began = ((main.get("state") or {}).get("running") or {}).get("startedAt")
    return began is not None and bool(ready.get("lastTransitionTime", "") > began)


def _present(pods: Iterable[Manifest]) -> list[Manifest]:
    """Pods that are meant to stay, newest first: an old one's trouble ends with it."""
    staying = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
    return sorted(staying, key=lambda pod: str(pod["metadata"].get("creationTimestamp")), reverse=True)


def _of_deployment(deployment: Manifest) -> Cause | None:
    """Pods that could not even be made: the ReplicaSet's controller says why."""
    failure = condition(deployment, "ReplicaFailure")
    if failure is not None and failure["status"] == "True" and not is_rolled_out(deployment):
        return Cause(f"Deployment {deployment['metadata']['name']}: {failure.get('message', '')}", CHECK_QUOTA)
    return None


def _of_pod(pod: Manifest) -> Cause | None:
    scheduled = condition(pod, "PodScheduled")
    if scheduled is not None and scheduled["status"] == "False":
        words = scheduled.get("message") or scheduled.get("reason") or ""
        return Cause(_about(pod, words), _scheduling_hint(words))
    if (pod.get("status") or {}).get("phase") == "Failed":
        status = pod["status"]
        return Cause(_about(pod, f"{status.get('reason', 'Failed')}: {status.get('message', '')}"), _see_log(pod))
    if _rests(pod):  # whatever ended before is over
        return None
    return next((cause for status in _containers(pod) if (cause := _of_container(pod, status))), None)


def _of_volumes(pod: Manifest, events: Iterable[Manifest]) -> Cause | None:
    """A pod whose volume is not there waits without a word in its status; the kubelet says why in an event."""
    if not any(_waiting(status).get("reason") in PREPARING for status in _containers(pod)):
        return None
    told = [event for event in events if event["involvedObject"]["name"] == pod["metadata"]["name"]]
    if not told:
        return None
    event = max(told, key=lambda event: int(event["metadata"]["resourceVersion"]))
    words = event.get("message") or ""
    return Cause(_about(pod, f"{event['reason']}: {words}"), _volume_hint(pod, words))


def _volume_hint(pod: Manifest, words: str) -> str:
    """By the volume that the kubelet names: which Secret must hold what."""
    name = match[1] if (match := VOLUME.search(words)) else ""
    volumes: list[Manifest] = pod["spec"].get("volumes") or []
    secret = next((volume["secret"] for volume in volumes if volume["name"] == name and "secret" in volume), None)
    if secret is None:
        return CHECK_CONTAINER
    keys = ", ".join(item["key"] for item in secret.get("items") or ())
    content = f" with the keys {keys}" if keys else ""
    return f'create Secret "{secret["secretName"]}" in the model\'s namespace{content}; the pod goes on by itself'


def _scheduling_hint(words: str) -> str:
    if "persistentvolumeclaim" in words:
        return MAKE_CLAIM
    return FREE_DEVICES if "Insufficient" in words else CHECK_POOL


def _containers(pod: Manifest) -> list[Manifest]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def _of_container(pod: Manifest, status: Manifest) -> Cause | None:
    waiting = _waiting(status)
    reason = waiting.get("reason", "")
    words = f"{reason}: {waiting.get('message', '')}"
    if reason in IMAGE_FAULTS:
        return Cause(_about(pod, words), CHECK_IMAGE)
    if reason in CONTAINER_FAULTS:
        return Cause(_about(pod, words), CHECK_CONTAINER)
    ended = _last_end(status)
    return _of_end(pod, ended) if ended and not status.get("ready") else None


def _waiting(status: Manifest) -> Manifest:
    return (status.get("state") or {}).get("waiting") or {}


def _last_end(status: Manifest) -> Manifest | None:
    """How the container ended, now or before its last restart."""
    for state in (status.get("state") or {}, status.get("lastState") or {}):
        ended: Manifest | None = state.get("terminated")
        if ended and ended.get("exitCode") != 0:
            return ended
    return None


def _of_end(pod: Manifest, ended: Manifest) -> Cause:
    return Cause(_about(pod, describe_end(ended)), hint_about(ended, otherwise=_see_log(pod)))


def _about(pod: Manifest, words: str) -> str:
    return f"Pod {pod['metadata']['name']}: {words.strip().rstrip(':')}"


def _see_log(pod: Manifest) -> str:
    return f"see the log: kubectl logs {pod['metadata']['name']} --previous"

"""Pods' status as the kubelet would write it, where no kubelet runs."""

from typing import Any

from tests.support.operator_world import CORE, Object, World


def set_status(world: World, pod: Object, **fields: Any) -> None:
    """Lays fields over the status that the pod has on the server by now."""
    path = f"{CORE.format(namespace=world.namespace)}/pods/{pod['metadata']['name']}"
    live = world.plane.rest.get(path)
    world.plane.rest.call("PUT", f"{path}/status", {**live, "status": {**live["status"], **fields}})


def not_ready(status: Object) -> list[Object]:
    """The conditions of a status, of a pod that is no longer ready."""
    return [
        {**one, "status": "False"} if one["type"] in ("Ready", "ContainersReady") else one
        for one in status["conditions"]
    ]


def waiting(reason: str, **status: Any) -> Object:
    """The container's status while the kubelet does not run it."""
    state = {"waiting": {"reason": reason}}
    return {"name": "main", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state, **status}

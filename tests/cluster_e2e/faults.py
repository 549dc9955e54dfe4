"""Faults in a real cluster: containers killed the hard way, from the node."""

import json

from tests.cluster.kind.cluster import KindCluster
from tests.cluster_e2e.models import Manifest


def kill_container(cluster: KindCluster, pod: Manifest) -> None:
    """SIGKILL to the first process of the pod's container, as the kernel does it when memory is short."""
    kill(cluster, process_of(cluster, pod))


def process_of(cluster: KindCluster, pod: Manifest) -> str:
    """The first process of the pod's container, by its id on the node; for who wants to kill it in time."""
    (container,) = pod["status"]["containerStatuses"]
    identifier = container["containerID"].removeprefix("containerd://")
    inspected = json.loads(cluster.node_exec(cluster.worker, "crictl", "inspect", identifier))
    return str(inspected["info"]["pid"])


def kill(cluster: KindCluster, process: str) -> None:
    cluster.node_exec(cluster.worker, "kill", "-9", process)

"""Two stages in one pod of a real cluster: they hand over through shared memory, and live and die together."""

from collections.abc import Iterator

import pytest

from omni_contract.wire import names
from tests.cluster_e2e import models
from tests.cluster_e2e.conftest import Cluster
from tests.cluster_e2e.pictures import paints_right
from tests.cluster_e2e.worker_metrics import samples
from tests.support.reference_images import ReferenceRequest
from tests.support.waiting import eventually

GROUP = "colocation-with-denoiser"
RESTART_S = 120
KILL_A_WORKER = """
import os, pathlib
commands = {path.parent.name: path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")}
workers = [pid for pid, words in commands.items() if b"omni_runtime.worker\\0--stage-file" in words]
os.kill(int(workers[-1]), 9)
"""


@pytest.fixture(scope="module")
def paired(cluster: Cluster) -> Iterator[str]:
    """The example, with denoiser and decoder in one pod."""
    manifest = models.example()
    manifest["metadata"]["name"] = "paired"
    manifest["spec"]["placement"] = {"colocate": [["denoiser", "vae-decoder"]]}
    manifest["spec"]["edges"] = [{"from": "denoiser", "to": "vae-decoder", "connector": "shm"}]
    with cluster.serving(manifest) as name:
        yield name


def test_two_stages_in_one_pod_paint_the_picture_of_one_process(cluster: Cluster, paired: str) -> None:
    (pod,) = cluster.pods(paired, GROUP)
    assert [one["name"] for one in pod["spec"]["containers"]] == ["main"]
    assert cluster.get("omnimodel", paired)["status"]["stagesReady"] == "3/3"
    assert paints_right(cluster, paired, ReferenceRequest("a red fox", seed=11))


def test_the_producer_puts_its_payloads_into_memory_that_both_see(cluster: Cluster, paired: str) -> None:
    (pod,) = cluster.pods(paired, GROUP)
    arenas = {
        sample.labels["what"]: sample.value
        for sample in samples(cluster, pod)
        if sample.name == names.WORKER_ARENA_BYTES
    }
    assert arenas["size"] > 0


def test_a_worker_that_dies_takes_its_pod_along_and_all_come_back(cluster: Cluster, paired: str) -> None:
    (pod,) = cluster.pods(paired, GROUP)
    name = pod["metadata"]["name"]
    cluster.kubectl("exec", name, "--", "/usr/bin/python3", "-c", KILL_A_WORKER)

    def has_restarted() -> bool:
        (now,) = cluster.pods(paired, GROUP)
        return bool(now["status"]["containerStatuses"][0]["restartCount"] == 1)

    eventually("the container is started again", has_restarted, RESTART_S)
    cluster.wait_ready(paired)
    assert paints_right(cluster, paired, ReferenceRequest("a red fox", seed=12))

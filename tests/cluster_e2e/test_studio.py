"""What a model may have beside its stages: the master of a managed store, an admin port, room for profiles."""

from collections.abc import Iterator
from itertools import pairwise

import aiohttp
import pytest
from openai import APIError, OpenAI

from tests.cluster_e2e import models
from tests.cluster_e2e.conftest import Cluster
from tests.cluster_e2e.faults import kill_container
from tests.cluster_e2e.forward import port_forward
from tests.cluster_e2e.pictures import paints_right
from tests.support.reference_images import ReferenceRequest
from tests.support.waiting import eventually

STAGES = ("text-encoder", "denoiser", "vae-decoder")
MASTER = "connector-store-master"
ADMIN_PORT = 50060
REJOIN_S = 120


@pytest.fixture(scope="module")
def studio(cluster: Cluster) -> Iterator[str]:
    manifest = models.example()
    manifest["metadata"]["name"] = "studio"
    spec = manifest["spec"]
    spec["connectors"] = [
        {"name": "store", "mooncakeStore": {"managed": True, "segmentSize": "64Mi", "bufferSize": "64Mi"}}
    ]
    spec["edges"] = [{"from": source, "to": target, "connector": "store"} for source, target in pairwise(STAGES)]
    spec["stages"][1] |= {"logLevel": "debug", "adminPort": ADMIN_PORT, "profiles": {"size": "256Mi"}}
    with cluster.serving(manifest) as name:
        yield name


def condition(cluster: Cluster, model: str, kind: str) -> tuple[str, str]:
    found = cluster.get("omnimodel", model)["status"]["conditions"]
    return next((one["status"], one["reason"]) for one in found if one["type"] == kind)


def test_payloads_take_the_store_of_a_master_that_the_operator_runs(cluster: Cluster, studio: str) -> None:
    assert len(cluster.pods(studio, MASTER)) == 1
    assert condition(cluster, studio, "ConnectorsReady") == ("True", "AllReady")
    assert paints_right(cluster, studio, ReferenceRequest("a red fox", seed=7))


def test_stages_join_a_master_that_was_killed_again(cluster: Cluster, studio: str) -> None:
    (master,) = cluster.pods(studio, MASTER)
    before = cluster.restarts(studio, *STAGES)
    kill_container(cluster.kind, master)
    with port_forward(cluster.kind, cluster.namespace, f"service/{studio}-frontend") as url:
        eventually("the store takes payloads again", lambda: is_painted(url), REJOIN_S, poll_s=1)
    cluster.wait_ready(studio)
    assert cluster.restarts(studio, *STAGES) == before
    assert paints_right(cluster, studio, ReferenceRequest("a red fox", seed=8))


async def test_a_stage_records_a_profile_sleeps_is_told_as_asleep_and_wakes(cluster: Cluster, studio: str) -> None:
    (pod,) = cluster.pods(studio, "denoiser")
    name = pod["metadata"]["name"]
    with port_forward(cluster.kind, cluster.namespace, f"pod/{name}", ADMIN_PORT) as url:
        trace = (await ask("POST", f"{url}/profile/start?steps=1"))["trace"]
        assert paints_right(cluster, studio, ReferenceRequest("a red fox", seed=9))
        await ask("POST", f"{url}/profile/stop")
        assert int(cluster.kubectl("exec", name, "--", "/usr/bin/stat", "--format=%s", trace)) > 0

        await ask("POST", f"{url}/sleep?level=2")
        eventually("it is told", lambda: condition(cluster, studio, "Ready") == ("False", "Asleep"))
        assert cluster.get("omnimodel", studio)["status"]["phase"] == "Asleep"
        await ask("POST", f"{url}/wake")
    cluster.wait_ready(studio)
    assert paints_right(cluster, studio, ReferenceRequest("a red fox", seed=10))


def is_painted(url: str) -> bool:
    """False while requests fail because their payloads have nowhere to go."""
    client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60)
    try:
        return bool(client.images.generate(prompt="a red fox", size="64x64", extra_body={"steps": 3}).data)
    except APIError:
        return False


async def ask(method: str, url: str) -> dict[str, str]:
    async with aiohttp.ClientSession() as http, http.request(method, url) as answer:
        said: dict[str, str] = await answer.json()
        assert answer.status == 200, said
        return said

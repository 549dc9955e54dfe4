"""The example on a real cluster: three stages in three pods make the picture that one process makes."""

import json
import subprocess
import sys
import textwrap
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest
from openai import BadRequestError, OpenAI

from tests.cluster.kind.volumes import namespace_object
from tests.cluster_e2e import inside
from tests.cluster_e2e.conftest import Cluster
from tests.cluster_e2e.faults import kill_container
from tests.cluster_e2e.forward import port_forward
from tests.cluster_e2e.pictures import array
from tests.support.reference_images import ReferenceRequest, reference_images

STAGES = ("text-encoder", "denoiser", "vae-decoder")
PROMPT = "a red fox"


@pytest.fixture(scope="module")
def client(cluster: Cluster, painter: str) -> Iterator[OpenAI]:
    with port_forward(cluster.kind, cluster.namespace, f"service/{painter}-frontend") as url:
        yield OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=400)


def pictures(client: OpenAI, seed: int, n: int = 1) -> list[numpy.ndarray]:
    answer = client.images.generate(
        model="tiny-qwen-image",
        prompt=PROMPT,
        n=n,
        size="64x64",
        extra_body={"seed": seed, "steps": 3, "true_cfg_scale": 4.0},
    )
    return [array(b64decode(item.b64_json)) for item in answer.data]


def expected(cluster: Cluster, *seeds: int) -> list[numpy.ndarray]:
    return reference_images(cluster.checkpoint, [ReferenceRequest(PROMPT, seed=seed) for seed in seeds])


def all_equal(made: list[numpy.ndarray], wanted: list[numpy.ndarray]) -> bool:
    return len(made) == len(wanted) and all(map(numpy.array_equal, made, wanted))


def test_each_stage_runs_in_a_restricted_pod_of_its_own(cluster: Cluster, painter: str) -> None:
    assert [len(cluster.pods(painter, component)) for component in (*STAGES, "frontend")] == [1, 1, 1, 1]
    labels = cluster.kind.kubectl("get", "namespace", cluster.namespace, "-o", "jsonpath={.metadata.labels}")
    wanted = namespace_object(cluster.namespace)["metadata"]["labels"]
    assert wanted.items() <= json.loads(labels).items()
    assert wanted["pod-security.kubernetes.io/enforce"] == "restricted"


def test_kubectl_get_shows_what_a_person_wants_to_know(cluster: Cluster, painter: str) -> None:
    header, row = cluster.kubectl("get", "om", painter).splitlines()

    assert header.split() == ["NAME", "PHASE", "READY", "STAGES", "URL", "AGE"]
    url = f"http://{painter}-frontend.{cluster.namespace}.svc:80/v1"
    assert row.split()[:5] == [painter, "Ready", "True", "3/3", url]


@pytest.mark.case("runtime:K5")
def test_three_seeds_give_three_pictures_equal_to_plain_diffusers(cluster: Cluster, client: OpenAI) -> None:
    made = [pictures(client, seed)[0] for seed in (1, 2, 3)]

    assert all_equal(made, expected(cluster, 1, 2, 3))
    assert len({picture.tobytes() for picture in made}) == 3


def test_two_at_once_equal_two_calls_with_the_next_seed(cluster: Cluster, client: OpenAI) -> None:
    assert all_equal(pictures(client, seed=1, n=2), expected(cluster, 1, 2))


def test_eight_requests_at_once_each_equal_their_single_runs(cluster: Cluster, client: OpenAI) -> None:
    seeds = range(10, 18)
    with ThreadPoolExecutor(len(seeds)) as pool:
        made = list(pool.map(lambda seed: pictures(client, seed)[0], seeds))

    assert all_equal(made, expected(cluster, *seeds))


def test_the_largest_pictures_cost_no_pod_and_larger_ones_are_refused(
    cluster: Cluster, painter: str, client: OpenAI
) -> None:
    restarts = cluster.restarts(painter)
    answer = client.images.generate(prompt=PROMPT, n=2, size="1024x1024", extra_body={"steps": 2})
    assert [array(b64decode(item.b64_json)).shape for item in answer.data] == [(1024, 1024, 3)] * 2
    with pytest.raises(BadRequestError, match="1048576") as refused:
        client.images.generate(prompt=PROMPT, size="64x65536")
    assert refused.value.param == "size"
    assert cluster.restarts(painter) == restarts


def test_sdk_inside_the_cluster_gets_the_same_picture(cluster: Cluster, painter: str) -> None:
    url = cluster.get("omnimodel", painter)["status"]["endpoints"]["url"]
    asked = ReferenceRequest(PROMPT, seed=4)

    png = inside.picture(cluster.kind, cluster.namespace, cluster.runtime_image, url, painter, asked)

    assert all_equal([array(png)], reference_images(cluster.checkpoint, [asked]))


def test_commands_of_the_notes_make_a_picture(cluster: Cluster, painter: str, tmp_path: Path) -> None:
    notes = cluster.installation.helm.notes()
    target = f"service/{painter}-frontend"
    assert f"kubectl port-forward {target} 8000:80\n" in notes
    snippet = textwrap.dedent(notes[notes.index("   import base64") : notes.index('"helm uninstall"')])

    with port_forward(cluster.kind, cluster.namespace, target) as url:
        program = snippet.replace("http://127.0.0.1:8000", url)
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=300)

    assert array((tmp_path / "cube.png").read_bytes()).shape == (64, 64, 3)


def test_request_id_is_in_the_log_of_the_frontend_and_of_the_stage_that_refuses(
    cluster: Cluster, painter: str, client: OpenAI
) -> None:
    with pytest.raises(BadRequestError) as refused:
        client.images.generate(
            model=painter,
            prompt=PROMPT,
            size="64x64",
            extra_body={"steps": 1},
            extra_headers={"x-request-id": "trace-me-7"},
        )

    assert refused.value.param == "steps"
    assert refused.value.response.headers["x-request-id"] == "trace-me-7"
    for component in ("denoiser", "frontend"):
        (pod,) = cluster.pods(painter, component)
        assert "trace-me-7" in cluster.kubectl("logs", pod["metadata"]["name"])


@pytest.mark.parametrize("stage", STAGES)
def test_request_outlives_the_only_pod_of_a_stage(cluster: Cluster, painter: str, client: OpenAI, stage: str) -> None:
    (pod,) = cluster.pods(painter, stage)
    kill_container(cluster.kind, pod)

    assert all_equal(pictures(client, seed=5), expected(cluster, 5))

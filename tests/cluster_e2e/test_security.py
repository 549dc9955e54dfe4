"""Mutual TLS on a real cluster: a model waits for its Secret, says so, and then paints over encrypted hops."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from omni_contract.wire.names import HEALTH_PORT, STAGE_PORT, certificate_name
from tests.cluster.certificates import Authority
from tests.cluster_e2e import models
from tests.cluster_e2e.conftest import Cluster
from tests.cluster_e2e.forward import port_forward
from tests.cluster_e2e.pictures import paints_right
from tests.support.reference_images import ReferenceRequest
from tests.support.waiting import eventually

MODEL, SECRET = "veiled", "veiled-tls"
STAGES = ("text-encoder", "denoiser", "vae-decoder")
KUBELET_S = 120
"""Its first tries to mount a volume come seconds after another, and it reports one that failed."""


@pytest.fixture(scope="module")
def veiled(cluster: Cluster) -> Iterator[str]:
    """The example with mutual TLS, applied before anybody has made the Secret."""
    manifest = models.example()
    manifest["metadata"]["name"] = MODEL
    manifest["spec"]["network"] = {"tls": {"secretName": SECRET}}
    manifest["spec"]["edges"] = [
        {"from": source, "to": target, "connector": "grpc"} for source, target in pairwise(STAGES)
    ]
    cluster.delete(MODEL)
    cluster.kubectl("delete", "secret", SECRET, "--ignore-not-found")
    models.apply(cluster.kind, cluster.namespace, manifest)
    yield MODEL
    cluster.dismiss(MODEL)
    cluster.kubectl("delete", "secret", SECRET, "--ignore-not-found")


def make_secret(cluster: Cluster, folder: Path) -> None:
    """One certificate for every component, as docs/security.md makes it."""
    authority = Authority(folder)
    authority.create()
    pair = authority.server("veiled", [certificate_name("*", MODEL, cluster.namespace)])
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.certificate}
    words = [f"--from-file={key}={path}" for key, path in files.items()]
    cluster.kubectl("create", "secret", "generic", SECRET, *words)


def rows(cluster: Cluster, model: str) -> list[models.Manifest]:
    """Of the status, by stage."""
    found: list[models.Manifest] = cluster.get("omnimodel", model).get("status", {}).get("stages", [])
    return found


@pytest.mark.case("operator:G12")
def test_a_model_waits_for_its_secret_says_so_and_then_paints_over_mutual_tls(
    cluster: Cluster, veiled: str, tmp_path: Path
) -> None:
    def all_wait() -> bool:
        told = rows(cluster, veiled)
        return bool(told) and all(f'secret "{SECRET}" not found' in row.get("message", "") for row in told)

    eventually("every stage waits for the Secret", all_wait, KUBELET_S)
    hints = {row["hint"] for row in rows(cluster, veiled)}
    assert hints == {
        f'create Secret "{SECRET}" in the model\'s namespace with the keys tls.crt, tls.key, ca.crt; the pod goes on '
        "by itself"
    }

    make_secret(cluster, tmp_path)
    cluster.wait_ready(veiled)

    assert paints_right(cluster, veiled, ReferenceRequest("a red fox", seed=6))


@pytest.mark.parametrize("stage", STAGES)
async def test_a_stage_answers_nobody_in_the_clear_but_health_checks(cluster: Cluster, veiled: str, stage: str) -> None:
    (pod,) = cluster.pods(veiled, stage)
    target = f"pod/{pod['metadata']['name']}"
    with port_forward(cluster.kind, cluster.namespace, target, HEALTH_PORT) as url:
        assert await health(url) == HealthCheckResponse.SERVING
    with port_forward(cluster.kind, cluster.namespace, target, STAGE_PORT) as url:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await health(url)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def health(url: str) -> int:
    async with grpc.aio.insecure_channel(url.removeprefix("http://")) as channel:
        answer = await HealthStub(channel).Check(HealthCheckRequest(), timeout=20)
    return int(answer.status)

"""The life of the release and of models on a real cluster: what an upgrade, an uninstall, a deletion, a key do."""

from collections.abc import Iterator

import aiohttp
import pytest

from tests.cluster_e2e import models
from tests.cluster_e2e.conftest import Cluster
from tests.cluster_e2e.fake_painter import NODE_PORT_SERVICE, fake_painter
from tests.cluster_e2e.forward import port_forward
from tests.support.fake_chain import STAGES
from tests.support.helm import NAMESPACE, RELEASE
from tests.support.picture_client import wrong_pictures
from tests.support.rights import account, granted, refused, used
from tests.support.waiting import eventually

GONE_TIMEOUT_S = 90
KINDS = "deployments,services,configmaps,serviceaccounts,rolebindings,controllerrevisions,replicasets,pods"


@pytest.fixture(scope="module")
def keeper(cluster: Cluster) -> Iterator[str]:
    """A small model whose endpoint is a port of the node, so that nothing in between ends with the operator."""
    with cluster.serving(fake_painter("keeper", replicas=1, service=NODE_PORT_SERVICE)) as name:
        yield name


def started(cluster: Cluster, model: str) -> set[tuple[str, str, int]]:
    """Each pod, with how often its container was started."""
    pods = cluster.pods(model)
    return {
        (pod["metadata"]["name"], pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
        for pod in pods
    }


@pytest.mark.case("operator:D12")
def test_upgrade_with_other_images_restarts_no_pod_of_a_model(cluster: Cluster, keeper: str) -> None:
    before = started(cluster, keeper)
    other = {"images": {"frontend": "localhost/other/frontend:2", "runtime": {"cpu": "localhost/other/runtime:2"}}}
    cluster.installation.install(cluster.images, other)
    cluster.kubectl("annotate", "omnimodel", keeper, "touched=1", "--overwrite")
    try:
        cluster.wait_ready(keeper)
        assert started(cluster, keeper) == before
    finally:
        cluster.installation.install(cluster.images)
    cluster.wait_ready(keeper)
    assert started(cluster, keeper) == before


@pytest.mark.case("operator:I02", "operator:I03", "operator:I09")
async def test_uninstall_keeps_the_models_and_they_go_on_serving(cluster: Cluster, keeper: str) -> None:
    before = started(cluster, keeper)
    cluster.installation.helm.uninstall()
    try:
        assert keeper in cluster.kubectl("get", "omnimodels")
        assert await wrong_pictures([cluster.kind.node_port_url], range(8)) == []
        assert started(cluster, keeper) == before
    finally:
        cluster.installation.install(cluster.images)
    cluster.wait_ready(keeper)
    assert started(cluster, keeper) == before


def test_deleting_a_model_removes_all_that_was_made_for_it(cluster: Cluster) -> None:
    selector = f"{models.GROUP}/model=brief"
    with cluster.serving(fake_painter("brief", replicas=1)) as name:
        assert len(cluster.get(KINDS, "-l", selector)["items"]) > len(STAGES) * 4

        cluster.kubectl("delete", "omnimodel", name, "--wait=false")

        eventually("nothing is left", lambda: cluster.get(KINDS, "-l", selector)["items"] == [], GONE_TIMEOUT_S)


async def test_endpoint_with_a_secret_asks_for_its_keys(cluster: Cluster) -> None:
    cluster.kubectl("delete", "secret", "keys", "--ignore-not-found")
    cluster.kubectl("create", "secret", "generic", "keys", "--from-literal=team-a=sk-right")
    locked = fake_painter("locked", replicas=1, auth={"apiKeysSecretRef": {"name": "keys"}})

    with cluster.serving(locked), port_forward(cluster.kind, cluster.namespace, "service/locked-frontend") as url:
        assert [await status_of(url, key) for key in ("", "sk-wrong", "sk-right")] == [401, 401, 200]


async def status_of(url: str, key: str) -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with aiohttp.ClientSession(headers=headers) as http, http.get(f"{url}/v1/models") as answer:
        return answer.status


@pytest.mark.case("operator:K01", "operator:K03")
def test_frontends_use_exactly_the_rights_that_the_chart_grants(cluster: Cluster, keeper: str) -> None:
    log = cluster.kind.audit_log
    user = account(cluster.namespace, f"{keeper}-frontend")
    (role,) = [one for one in cluster.installation.helm.render() if one["metadata"]["name"] == "omni-frontend"]

    assert refused(log, user) == []
    assert used(log, user) == granted([role])


def test_operator_is_never_refused_anything(cluster: Cluster, keeper: str) -> None:
    """Since its installation: an uninstall takes its rights away before its pod has given the lease back."""
    deployment = models.get(cluster.kind, NAMESPACE, "deployment", RELEASE)
    installed_at = deployment["metadata"]["creationTimestamp"]
    refusals = refused(cluster.kind.audit_log, account(NAMESPACE, RELEASE))

    assert [request for request in refusals if request.received_at > installed_at] == []

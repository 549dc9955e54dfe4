"""Two replicas of everything under load: any pod may be killed or deleted, and every request is answered right."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from omni_contract.wire import names
from tests.cluster_e2e.conftest import Cluster
from tests.cluster_e2e.fake_painter import fake_painter
from tests.cluster_e2e.faults import kill_container
from tests.cluster_e2e.forward import port_forward
from tests.cluster_e2e.models import Manifest
from tests.cluster_e2e.worker_metrics import held
from tests.support.fake_chain import STAGES
from tests.support.picture_client import raw_request, wrong_pictures
from tests.support.waiting import eventually

ROUND = 24
AT_ONCE = 6
POD_PORT = 8000
SETTLE_S = 30
SLOW_S = 30
"""Of a request at the slow denoiser; half of it is the time in which a test must see what it looks for."""


@pytest.fixture(scope="module")
def chain(cluster: Cluster) -> Iterator[str]:
    with cluster.serving(fake_painter()) as name:
        yield name


@pytest.fixture
def urls(cluster: Cluster, chain: str) -> Iterator[list[str]]:
    with forwarded(cluster, chain) as urls:
        yield urls


@contextmanager
def forwarded(cluster: Cluster, model: str) -> Iterator[list[str]]:
    """One URL for each frontend pod."""
    with ExitStack() as forwards:
        yield [
            forwards.enter_context(port_forward(cluster.kind, cluster.namespace, f"pod/{name_of(pod)}", POD_PORT))
            for pod in cluster.pods(model, "frontend")
        ]


def name_of(pod: Manifest) -> str:
    name: str = pod["metadata"]["name"]
    return name


async def wrong_while(urls: list[str], disturb: Callable[[], None]) -> list[str]:
    """Asks in rounds, from before the disturbance until a whole round after it."""
    disturbance = asyncio.create_task(asyncio.to_thread(disturb))
    wrong, first, is_over = [], 0, False
    while not is_over:
        is_over = disturbance.done()
        wrong += await wrong_pictures(urls, range(first, first + ROUND), at_once=AT_ONCE)
        first += ROUND
    await disturbance
    return wrong


async def settles(cluster: Cluster, model: str) -> None:
    """Until no worker holds or runs anything."""

    def holds_nothing() -> bool:
        return not any(held(cluster, pod) for stage in STAGES for pod in cluster.pods(model, stage))

    await asyncio.to_thread(eventually, "every worker holds nothing", holds_nothing, SETTLE_S)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.case("operator:F15", "runtime:L7")
async def test_killed_pod_of_a_stage_costs_no_request(
    cluster: Cluster, chain: str, urls: list[str], stage: str
) -> None:
    def kill() -> None:
        kill_container(cluster.kind, cluster.pods(chain, stage)[0])
        cluster.wait_ready(chain)

    assert await wrong_while(urls, kill) == []
    await settles(cluster, chain)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.case("operator:F06", "operator:F07")
async def test_pod_that_is_told_to_leave_under_load_costs_no_request(
    cluster: Cluster, chain: str, urls: list[str], stage: str
) -> None:
    def delete() -> None:
        cluster.kubectl("delete", "pod", name_of(cluster.pods(chain, stage)[0]), "--timeout=90s")
        cluster.wait_ready(chain)

    assert await wrong_while(urls, delete) == []


async def test_killed_frontend_frees_its_work_and_touches_no_other(cluster: Cluster) -> None:
    def running() -> float:
        (pod,) = cluster.pods(model, "denoiser")
        return held(cluster, pod).get(names.WORKER_RUNNING, 0)

    async def runs(count: int) -> None:
        await asyncio.to_thread(eventually, f"{count} requests run", lambda: running() == count, SLOW_S / 2)

    with cluster.serving(slow_painter()) as model, forwarded(cluster, model) as (doomed_url, spared_url):
        doomed = [asyncio.create_task(raw_request(doomed_url, seed, 2 * SLOW_S)) for seed in range(3)]
        await runs(3)
        spared = asyncio.create_task(wrong_pictures([spared_url], range(2)))
        await runs(5)
        await asyncio.to_thread(kill_container, cluster.kind, cluster.pods(model, "frontend")[0])
        await runs(2)
        assert await spared == []
        assert all(isinstance(one, Exception) for one in await asyncio.gather(*doomed, return_exceptions=True))
        await settles(cluster, model)


def slow_painter() -> Manifest:
    """One replica of each stage under two frontends; the denoiser takes long enough to look at."""
    model = fake_painter("slow", replicas=1)
    denoiser = model["spec"]["stages"][STAGES.index("denoiser")]
    denoiser["fake"] = {"behavior": "delay", "delaySeconds": 0.25, "steps": 4 * SLOW_S}
    model["spec"]["frontend"]["replicas"] = 2
    return model

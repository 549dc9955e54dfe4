"""Two frontends on one set of workers: when one dies, its work is freed everywhere and the other's is not touched."""

import asyncio
from pathlib import Path

import pytest

from omni_contract.api.v1alpha1 import FakeEngine
from tests.support.fake_chain import STAGES, fake_chain
from tests.support.model_processes import model_processes
from tests.support.picture_client import client, expected, picture, raw_request, wrong_pictures
from tests.support.worker_stats import holds_nothing, stats_when

SLOW = FakeEngine(behavior="delay", delay_seconds=0.1, steps=60)
SETTLE_S = 10


@pytest.mark.parametrize("stage", STAGES)
async def test_the_work_of_a_killed_frontend_is_freed_and_no_other(tmp_path: Path, stage: str) -> None:
    with model_processes(fake_chain({stage: SLOW}, connector="grpc"), tmp_path, frontends=2) as processes:
        await processes.start()
        address = processes.plans[stage].health
        doomed = [asyncio.create_task(raw_request(processes.urls[0], seed, 60)) for seed in range(3)]
        await stats_when(address, lambda now: now.running == 3, within_s=SETTLE_S)
        spared = [asyncio.create_task(picture(client(processes.urls[1]), seed)) for seed in range(2)]
        await stats_when(address, lambda now: now.running == 5, within_s=SETTLE_S)
        processes.kill("frontend-0")
        await stats_when(address, lambda now: now.running == 2, within_s=2)
        assert await asyncio.gather(*spared) == [expected(0), expected(1)]
        assert all(isinstance(one, Exception) for one in await asyncio.gather(*doomed, return_exceptions=True))
        for name in processes.stages:
            await stats_when(processes.plans[name].health, holds_nothing, within_s=SETTLE_S)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.case("runtime:C1", "runtime:C7")
async def test_a_client_that_leaves_frees_every_stage_within_a_step(tmp_path: Path, stage: str) -> None:
    with model_processes(fake_chain({stage: SLOW}, connector="grpc"), tmp_path) as processes:
        await processes.start()
        leaving = asyncio.create_task(raw_request(processes.urls[0], 1, 60))
        await stats_when(processes.plans[stage].health, lambda now: now.running == 1, within_s=SETTLE_S)
        leaving.cancel()
        for name in processes.stages:
            await stats_when(processes.plans[name].health, holds_nothing, within_s=1)
        assert (await stats_when(processes.plans[stage].health, holds_nothing, 1)).cancelled_total == 1


async def test_a_frontend_that_starts_again_serves_at_once(tmp_path: Path) -> None:
    with model_processes(fake_chain(), tmp_path) as processes:
        await processes.start()
        processes.kill("frontend-0")
        await processes.start("frontend-0")
        assert await wrong_pictures(processes.urls, range(8)) == []

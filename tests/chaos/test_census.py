"""After load, cancels and kills, the operating system sees no more descriptors, memory files, sockets or children."""

import asyncio
from pathlib import Path

import pytest

from omni_contract.api.v1alpha1 import FakeEngine
from tests.support.fake_chain import STAGES, fake_chain
from tests.support.model_processes import ModelProcesses, model_processes
from tests.support.picture_client import raw_request, routable_replicas, wrong_pictures
from tests.support.process_census import Growth, ProcessCensus, growth
from tests.support.waiting import settled

SLACK_KIB = 24 * 1024
"""Allocators keep freed pages; a leak over a round's requests is larger."""
ROUND = 200
SETTLE_S = 10


async def settled_growth(processes: ModelProcesses, before: dict[str, ProcessCensus]) -> list[Growth]:
    def grown() -> list[Growth]:
        now = processes.census()
        return growth({name: before[name] for name in before if name in now}, now, SLACK_KIB)

    return await asyncio.to_thread(settled, grown, lambda found: not found, SETTLE_S)


async def leave_early(processes: ModelProcesses, requests: int) -> None:
    """Clients that go away while their requests run."""
    asking = [asyncio.create_task(raw_request(processes.urls[0], seed, 60)) for seed in range(requests)]
    await asyncio.wait(asking, timeout=0.05)
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)


@pytest.mark.case("runtime:S18", "runtime:M1", "runtime:M4")
async def test_a_round_of_requests_leaves_nothing_behind(tmp_path: Path) -> None:
    with model_processes(fake_chain(replicas=2, connector="grpc"), tmp_path) as processes:
        await processes.start()
        assert await wrong_pictures(processes.urls, range(ROUND)) == []
        before = processes.census()
        assert await wrong_pictures(processes.urls, range(ROUND)) == []
        assert await settled_growth(processes, before) == []


@pytest.mark.case("runtime:C2", "runtime:C5")
async def test_clients_that_leave_early_leave_nothing_behind(tmp_path: Path) -> None:
    slow = FakeEngine(behavior="delay", delay_seconds=0.01, steps=20)
    with model_processes(fake_chain({"denoiser": slow}, connector="grpc"), tmp_path) as processes:
        await processes.start()
        assert await wrong_pictures(processes.urls, range(ROUND)) == []
        before = processes.census()
        for _ in range(20):
            await leave_early(processes, requests=50)
        assert await wrong_pictures(processes.urls, range(8)) == []
        assert await settled_growth(processes, before) == []


async def all_attached(processes: ModelProcesses) -> None:
    """The frontend has its connections to both replicas of each stage again."""
    async with asyncio.timeout(SETTLE_S):
        for stage in STAGES:
            attached = 0
            while attached < 2:
                attached = await routable_replicas(processes.urls[0], stage)
                await asyncio.sleep(0.05)


@pytest.mark.case("runtime:M2")
async def test_survivors_of_killed_neighbours_hold_no_more_than_before(tmp_path: Path) -> None:
    async def kill_the_first_of_each_stage() -> None:
        for name in processes.stages[::2]:
            load = asyncio.create_task(wrong_pictures(processes.urls, range(ROUND)))
            processes.kill(name)
            await processes.start(name)
            assert await load == []

    with model_processes(fake_chain(replicas=2, connector="grpc"), tmp_path) as processes:
        await processes.start()
        await kill_the_first_of_each_stage()
        await all_attached(processes)
        survivors = {name: now for name, now in processes.census().items() if name not in processes.stages[::2]}
        await kill_the_first_of_each_stage()
        assert await settled_growth(processes, survivors) == []


async def test_the_census_sees_a_stage_that_leaks(tmp_path: Path) -> None:
    leaking = fake_chain({"denoiser": FakeEngine(behavior="leak")}, connector="grpc")
    with model_processes(leaking, tmp_path) as processes:
        await processes.start()
        assert await wrong_pictures(processes.urls, range(20)) == []
        before = processes.census()
        assert await wrong_pictures(processes.urls, range(40)) == []
        found = growth(before, processes.census(), SLACK_KIB)
    assert {(one.process, one.what) for one in found} >= {("denoiser", "descriptors"), ("denoiser", "memory_files")}
    assert all(one.after - one.before == 40 for one in found if one.what == "memory_files")

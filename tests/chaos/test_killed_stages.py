"""Two replicas of each stage under load: any one may die, stop or leave, and every request is answered right."""

import asyncio
import signal
from itertools import count
from pathlib import Path

import pytest

from omni_contract.api.v1alpha1 import FakeEngine, FrontendLimits
from tests.support.fake_chain import fake_chain
from tests.support.model_processes import ModelProcesses, model_processes
from tests.support.picture_client import raw_request, wrong_pictures
from tests.support.worker_stats import holds_nothing, stats_when

STEPS = FakeEngine(behavior="delay", delay_seconds=0.02, steps=3)
REQUESTS = 60
SETTLE_S = 10


async def ask_while(processes: ModelProcesses, disturbed: asyncio.Task[None]) -> list[str]:
    """Requests in a row of rounds until the disturbance is over, and one round after it."""
    wrong, seeds, is_over = [], count(), False
    while not is_over:
        is_over = disturbed.done()
        wrong += await wrong_pictures(processes.urls, [next(seeds) for _ in range(REQUESTS)], at_once=12)
    await disturbed
    return wrong


async def all_hold_nothing(processes: ModelProcesses) -> None:
    for name in processes.stages:
        await stats_when(processes.plans[name].health, holds_nothing, within_s=SETTLE_S)


@pytest.mark.case("operator:F15", "runtime:L7", "runtime:L18")
async def test_all_requests_are_answered_right_while_each_stage_process_is_killed_in_turn(tmp_path: Path) -> None:
    async def kill_each() -> None:
        for name in processes.stages:
            processes.kill(name)
            await processes.start(name)

    with model_processes(fake_chain(usual=STEPS, replicas=2, connector="grpc"), tmp_path) as processes:
        await processes.start()
        assert await ask_while(processes, asyncio.create_task(kill_each())) == []
        await all_hold_nothing(processes)


@pytest.mark.case("operator:F06", "operator:F07", "runtime:L4")
async def test_a_stage_that_is_told_to_leave_under_load_loses_no_running_request(tmp_path: Path) -> None:
    async def replace_each() -> None:
        for name in processes.stages:
            processes.signal(name, signal.SIGTERM)
            assert await processes.wait(name, timeout_s=30) == 0
            await processes.start(name)

    with model_processes(fake_chain(usual=STEPS, replicas=2, connector="grpc"), tmp_path) as processes:
        await processes.start()
        assert await ask_while(processes, asyncio.create_task(replace_each())) == []
        await all_hold_nothing(processes)


async def test_the_only_replica_finishes_what_it_runs_before_it_leaves(tmp_path: Path) -> None:
    slow = fake_chain({"denoiser": FakeEngine(behavior="delay", delay_seconds=0.2, steps=10)})
    with model_processes(slow, tmp_path) as processes:
        await processes.start()
        running = asyncio.create_task(wrong_pictures(processes.urls, range(4)))
        await stats_when(processes.plans["denoiser"].health, lambda now: now.running == 4, within_s=SETTLE_S)
        processes.signal("denoiser", signal.SIGTERM)
        assert await running == []
        assert await processes.wait("denoiser", timeout_s=30) == 0


@pytest.mark.case("runtime:L13")
async def test_a_stage_that_hangs_is_left_out_and_comes_back(tmp_path: Path) -> None:
    with model_processes(fake_chain(usual=STEPS, replicas=2), tmp_path) as processes:
        await processes.start()
        processes.signal("denoiser-0", signal.SIGSTOP)
        assert await wrong_pictures(processes.urls, range(REQUESTS)) == []
        processes.signal("denoiser-0", signal.SIGCONT)
        assert await wrong_pictures(processes.urls, range(REQUESTS)) == []
        await all_hold_nothing(processes)


async def test_an_engine_that_dies_ends_its_process_and_no_request(tmp_path: Path) -> None:
    dying = fake_chain({"denoiser": FakeEngine(behavior="crash", crash_at=20)}, replicas=2)
    with model_processes(dying, tmp_path) as processes:
        await processes.start()
        assert await wrong_pictures(processes.urls, range(30)) == []
        ended = [name for name in ("denoiser-0", "denoiser-1") if processes.has_ended(name)]
        assert len(ended) <= 1
        assert [await processes.wait(name, 5) for name in ended] == [4] * len(ended)


@pytest.mark.parametrize("stage", ["text-encoder", "denoiser", "vae-decoder"])
async def test_without_any_replica_requests_get_503_when_the_queue_timeout_is_over(tmp_path: Path, stage: str) -> None:
    limits = FrontendLimits(queue_timeout_seconds=2)
    with model_processes(fake_chain(limits=limits), tmp_path) as processes:
        await processes.start()
        processes.kill(stage)
        started_s = asyncio.get_running_loop().time()
        answer = await raw_request(processes.urls[0], seed=1, timeout_s=30)
        took_s = asyncio.get_running_loop().time() - started_s
        assert answer.status == 503
        assert answer.body["error"]["code"] == "stage_unavailable"
        assert int(answer.headers["retry-after"]) >= 1
        assert 1.5 <= took_s <= limits.queue_timeout_seconds + 2
        await processes.start(stage)
        assert await wrong_pictures(processes.urls, range(4)) == []

"""Stages of a real model that sleep: what frontends do with them, and that no request is lost by it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import aiohttp
import grpc
import pytest

from omni_contract.api.v1alpha1 import FakeEngine, FrontendLimits
from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.stage_pb2_grpc import ControlStub
from tests.support.fake_chain import fake_chain
from tests.support.model_processes import ModelProcesses, model_processes
from tests.support.picture_client import raw_request, wrong_pictures

PATIENCE_S = 60
STEPS = FakeEngine(behavior="delay", delay_seconds=0.02, steps=3)


@asynccontextmanager
async def control(processes: ModelProcesses, name: str) -> AsyncIterator[ControlStub]:
    async with grpc.aio.insecure_channel(processes.plans[name].health) as channel:
        yield ControlStub(channel)


async def put_to_sleep(processes: ModelProcesses, name: str) -> None:
    async with control(processes, name) as stub:
        await stub.Sleep(wire.SleepRequest(level=1, timeout_ms=PATIENCE_S * 1000), timeout=PATIENCE_S)


async def wake(processes: ModelProcesses, name: str) -> None:
    async with control(processes, name) as stub:
        await stub.Wake(wire.WakeRequest(), timeout=PATIENCE_S)


async def stages_of(processes: ModelProcesses) -> tuple[int, dict[str, str]]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{processes.urls[0]}/readyz") as answer,
    ):
        return answer.status, (await answer.json())["stages"]


async def test_replicas_that_fall_asleep_and_wake_under_load_lose_no_request(tmp_path: Path) -> None:
    async def rest_each() -> None:
        for name in processes.stages:
            await put_to_sleep(processes, name)
            await wake(processes, name)

    with model_processes(fake_chain(usual=STEPS, replicas=2, connector="grpc"), tmp_path) as processes:
        await processes.start()
        resting, wrong, seeds = asyncio.create_task(rest_each()), [], count()
        while not resting.done():
            wrong += await wrong_pictures(processes.urls, [next(seeds) for _ in range(30)], at_once=12)
        await resting
        assert wrong == []


async def test_a_stage_that_sleeps_answers_503_with_the_reason_when_the_queue_timeout_is_over(tmp_path: Path) -> None:
    with model_processes(fake_chain(limits=FrontendLimits(queue_timeout_seconds=1)), tmp_path) as processes:
        await processes.start()
        await put_to_sleep(processes, "denoiser")
        answer = await raw_request(processes.urls[0], seed=1, timeout_s=30)
        assert (answer.status, answer.body["error"]["code"]) == (503, "stage_unavailable")
        assert "no replica of denoiser (asleep) is ready" in answer.body["error"]["message"]
        status, stages = await stages_of(processes)
        assert (status, stages["denoiser"], stages["vae-decoder"]) == (200, "asleep", "live")


async def test_a_request_that_waits_for_a_stage_that_sleeps_runs_once_it_is_woken(tmp_path: Path) -> None:
    with model_processes(fake_chain(limits=FrontendLimits(queue_timeout_seconds=30)), tmp_path) as processes:
        await processes.start()
        await put_to_sleep(processes, "text-encoder")
        asking = asyncio.create_task(wrong_pictures(processes.urls, [1]))
        await asyncio.wait([asking], timeout=0.5)
        assert not asking.done()
        await wake(processes, "text-encoder")
        assert await asking == []


async def test_a_frontend_that_starts_while_a_stage_sleeps_gets_ready(tmp_path: Path) -> None:
    with model_processes(fake_chain(), tmp_path) as processes:
        await processes.start(*processes.stages)
        await put_to_sleep(processes, "denoiser")
        await processes.start("frontend-0")
        assert (await stages_of(processes))[1]["denoiser"] == "asleep"
        await wake(processes, "denoiser")
        assert await wrong_pictures(processes.urls, [1]) == []


@pytest.mark.parametrize("order", [1, -1], ids=["forwards", "backwards"])
async def test_the_processes_of_a_model_may_start_in_any_order(tmp_path: Path, order: int) -> None:
    """Each is ready, as far as it can be, before the next begins; the frontend first or last."""
    with model_processes(fake_chain(), tmp_path) as processes:
        names = [*processes.stages, "frontend-0"][::order]
        for name in names:
            processes.spawn(name)
            if name != "frontend-0":
                await processes.wait_ready(name)
        await processes.wait_ready("frontend-0")
        assert await wrong_pictures(processes.urls, range(4)) == []

"""More than the model can take, or longer than it may take: a status that says so, and nothing left behind."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import openai as sdk
import pytest
from httpx2 import AsyncClient

from omni_contract.api.v1alpha1 import FakeEngine, FrontendLimits
from tests.support.fake_chain import MODEL, fake_chain
from tests.support.model_processes import ModelProcesses, model_processes
from tests.support.picture_client import client, expected, picture
from tests.support.worker_stats import holds_nothing, stats_when

STALL = FakeEngine(behavior="stall")
SLOTS = 4
SLOW = FakeEngine(behavior="delay", delay_seconds=0.05, steps=5)


@asynccontextmanager
async def running(
    folder: Path, engine: FakeEngine, arguments: tuple[str, ...] = (), **limits: int
) -> AsyncIterator[ModelProcesses]:
    model = fake_chain({"denoiser": engine}, limits=FrontendLimits(**limits))
    stages = tuple(replace(stage, max_in_flight=SLOTS) for stage in model.stages)
    with model_processes(replace(model, stages=stages), folder) as processes:
        plan = processes.plans["frontend-0"]
        processes.plans["frontend-0"] = replace(plan, arguments=(*plan.arguments, *arguments))
        await processes.start()
        yield processes


async def all_hold_nothing(processes: ModelProcesses, within_s: float = 2) -> None:
    for name in processes.stages:
        await stats_when(processes.plans[name].health, holds_nothing, within_s)


async def unhealthy(http: AsyncClient, within_s: float) -> None:
    """HTTP has no way to be told, so this asks again."""
    async with asyncio.timeout(within_s):
        while (await http.get("/healthz")).status_code == 200:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_beyond_the_queue_requests_get_429_with_a_time_to_come_back(tmp_path: Path) -> None:
    async with running(tmp_path, SLOW, max_queue_length=4) as processes:
        openai = client(processes.urls[0])
        answers = await asyncio.gather(*(picture(openai, seed) for seed in range(60)), return_exceptions=True)
        refused = [answer for answer in answers if isinstance(answer, sdk.RateLimitError)]
        served = {seed: answer for seed, answer in enumerate(answers) if isinstance(answer, bytes)}
        assert refused and served and len(refused) + len(served) == 60
        assert all(answer == expected(seed) for seed, answer in served.items())
        assert {error.code for error in refused} == {"overloaded"}
        assert all(int(error.response.headers["retry-after"]) >= 1 for error in refused)
        await all_hold_nothing(processes)


async def test_a_request_over_its_time_gets_504_and_frees_every_stage(tmp_path: Path) -> None:
    async with running(tmp_path, STALL, request_timeout_seconds=1, queue_timeout_seconds=1) as processes:
        with pytest.raises(sdk.InternalServerError) as caught:
            await picture(client(processes.urls[0]), 1)
        assert (caught.value.status_code, caught.value.code) == (504, "deadline_exceeded")
        assert "denoiser" in caught.value.message
        await all_hold_nothing(processes)


@pytest.mark.case("runtime:C1", "runtime:C7", "runtime:C9")
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_ends_all_of_its_images_on_every_stage(tmp_path: Path, stream: bool) -> None:
    async with running(tmp_path, STALL) as processes:
        body = {"prompt": "a fox", "n": 3, "stream": stream}
        async with AsyncClient(timeout=30, trust_env=False) as http:
            asking = asyncio.create_task(http.post(f"{processes.urls[0]}/v1/images/generations", json=body))
            await stats_when(processes.plans["denoiser"].health, lambda now: now.running + now.waiting >= 1, 10)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        await all_hold_nothing(processes, within_s=1)


@pytest.mark.case("runtime:C2")
async def test_three_times_as_many_aborts_as_slots_leave_the_model_serving(tmp_path: Path) -> None:
    async with running(tmp_path, SLOW) as processes:
        openai = client(processes.urls[0])
        for _ in range(3):
            asking = [asyncio.create_task(picture(openai, seed)) for seed in range(3 * SLOTS)]
            await stats_when(processes.plans["denoiser"].health, lambda now: now.running >= 1, 10)
            for one in asking:
                one.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        assert await picture(openai, 5) == expected(5)
        await all_hold_nothing(processes)


async def test_a_body_that_comes_too_slowly_gets_408(tmp_path: Path) -> None:
    async with running(tmp_path, SLOW, ("--body-timeout", "0.3")) as processes:
        host, _, port = processes.urls[0].removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port), family=socket.AF_INET)
        writer.write(b"POST /v1/images/generations HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n")
        writer.write(b'content-length: 9\r\n\r\n{"a"')
        answer = (await asyncio.wait_for(reader.readuntil(b"}}"), 5)).decode()
        writer.close()
        assert answer.startswith("HTTP/1.1 408")
        assert '"code":"body_timeout"' in answer


async def test_sigterm_finishes_running_requests_then_exits_with_0(tmp_path: Path) -> None:
    async with running(tmp_path, SLOW) as processes:
        asking = asyncio.create_task(picture(client(processes.urls[0]), 5))
        await stats_when(processes.plans["denoiser"].health, lambda now: now.running == 1, 10)
        processes.signal("frontend-0", signal.SIGTERM)
        assert await asking == expected(5)
        assert await processes.wait("frontend-0", timeout_s=10) == 0


async def test_sigterm_gives_up_what_runs_longer_than_the_drain_timeout(tmp_path: Path) -> None:
    async with running(tmp_path, STALL, ("--drain-timeout", "1")) as processes:
        asking = asyncio.create_task(picture(client(processes.urls[0]), 5))
        await stats_when(processes.plans["denoiser"].health, lambda now: now.running == 1, 10)
        processes.signal("frontend-0", signal.SIGTERM)
        assert await processes.wait("frontend-0", timeout_s=10) == 0
        with pytest.raises(sdk.APIError):
            await asking
        await all_hold_nothing(processes)


async def test_health_tells_what_can_be_served_now(tmp_path: Path) -> None:
    async with running(tmp_path, SLOW) as processes, AsyncClient(base_url=processes.urls[0], trust_env=False) as http:
        assert (await http.get("/healthz")).json()["outputs"] == {"image": True}
        processes.kill("vae-decoder")
        await unhealthy(http, within_s=2)
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()["outputs"]) == (200, {"image": False})
        assert ready.json()["stages"]["vae-decoder"] == "missing"
        await processes.start("vae-decoder")
        assert await picture(client(processes.urls[0]), 1) == expected(1)
        assert (await http.get("/version")).json()["model"] == MODEL

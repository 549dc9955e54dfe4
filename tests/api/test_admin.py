"""The frontend's admin port: a call reaches every replica of the stages that are named; each answers for itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from httpx2 import AsyncClient

from omni_contract.api.v1alpha1 import FakeEngine
from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.exit_codes import ExitCode
from tests.support.fake_chain import STAGES, fake_chain
from tests.support.model_processes import ModelProcesses, free_ports, model_processes
from tests.support.picture_client import client, expected, picture
from tests.support.worker_stats import stats, stats_when

DENOISER = FakeEngine(behavior="delay", delay_seconds=0.05, steps=4)


@asynccontextmanager
async def administered(folder: Path, *flags: str) -> AsyncIterator[tuple[ModelProcesses, AsyncClient]]:
    """Two replicas of each stage, and the port."""
    [port] = free_ports(1)
    with model_processes(fake_chain({"denoiser": DENOISER}, replicas=2), folder) as processes:
        plan = processes.plans["frontend-0"]
        processes.plans["frontend-0"] = replace(plan, arguments=(*plan.arguments, "--admin-port", str(port)))
        for name in processes.stages:
            plan = processes.plans[name]
            processes.plans[name] = replace(plan, arguments=(*plan.arguments, *flags))
        await processes.start()
        async with AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as http:
            yield processes, http


async def called(http: AsyncClient, method: str, target: str, **more: Any) -> tuple[int, Any]:
    answer = await http.request(method, target, **more)
    return answer.status_code, answer.json()


async def painted(processes: ModelProcesses, seed: int) -> bytes:
    async with client(processes.urls[0]) as openai:
        return await picture(openai, seed)


async def state(processes: ModelProcesses, name: str) -> str:
    return wire.WorkerState.Name((await stats(processes.plans[name].health)).state).removeprefix("WORKER_STATE_")


async def test_every_replica_of_a_stage_sleeps_and_wakes_and_the_others_do_not(tmp_path: Path) -> None:
    async with administered(tmp_path) as (processes, http):
        status, body = await called(http, "POST", "/sleep?stage=denoiser&level=2")
        slept = [{"stage": "denoiser", "replica": f"denoiser-{n}", "answer": {"freed_bytes": 0}} for n in (0, 1)]
        assert (status, body) == (200, {"replicas": slept})
        assert [await state(processes, f"denoiser-{n}") for n in (0, 1)] == ["ASLEEP", "ASLEEP"]
        assert await state(processes, "vae-decoder-0") == "READY"
        assert (await called(http, "POST", "/wake?stage=denoiser"))[0] == 200
        assert await painted(processes, 3) == expected(3)


async def test_what_one_refuses_the_others_do_and_each_says_so(tmp_path: Path) -> None:
    async with administered(tmp_path) as (processes, http):
        asking = asyncio.create_task(painted(processes, 3))
        busy = await busy_one(processes)
        status, body = await called(http, "POST", "/sleep?stage=denoiser&timeout=0")
        assert status == 207
        by_name = {one["replica"]: one for one in body["replicas"]}
        assert by_name[busy]["error"]["code"] == "still_busy"
        assert "goes on as before" in by_name[busy]["error"]["message"]
        [other] = by_name.keys() - {busy}
        assert by_name[other]["answer"] == {"freed_bytes": 0}
        assert await asking == expected(3)


async def busy_one(processes: ModelProcesses) -> str:
    """Which of the denoisers got the request."""
    waiting = {
        asyncio.create_task(stats_when(processes.plans[name].health, lambda now: now.running == 1, 10)): name
        for name in ("denoiser-0", "denoiser-1")
    }
    done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return waiting[done.pop()]


async def test_profiles_caches_and_figures_of_chosen_stages(tmp_path: Path) -> None:
    async with administered(tmp_path, "--profile-dir", str(tmp_path / "profiles")) as (processes, http):
        status, body = await called(http, "POST", "/profile/start?stage=text-encoder&stage=denoiser&steps=1000")
        assert (status, len(body["replicas"])) == (200, 4)
        await painted(processes, 1)
        status, body = await called(http, "POST", "/profile/stop?stage=text-encoder&stage=denoiser")
        steps = [one["answer"]["steps"] for one in body["replicas"]]
        assert status == 200 and sum(steps) == 1 + DENOISER.steps
        assert (
            len({one["answer"]["trace"] for one in body["replicas"]})
            == len(list((tmp_path / "profiles").iterdir()))
            == 4
        )
        _, body = await called(http, "POST", "/cache/reset?stage=*")
        assert sum(one["answer"]["entries"] for one in body["replicas"]) == len(STAGES)
        _, body = await called(http, "GET", "/stats")
        assert {one["answer"]["state"] for one in body["replicas"]} == {"ready"}
        assert sum(one["answer"]["requests_total"] for one in body["replicas"]) == len(STAGES)


async def test_a_replica_that_is_gone_is_told_beside_the_others(tmp_path: Path) -> None:
    async with administered(tmp_path) as (processes, http):
        processes.kill("denoiser-1")
        status, body = await called(http, "POST", "/drain?stage=denoiser&timeout=1")
        assert status == 207
        [one, gone] = body["replicas"]
        assert one["answer"] == {"left_running": 0}
        assert gone["error"]["code"] == "stage_unavailable"
        assert (await called(http, "POST", "/profile/start?stage=denoiser"))[0] in (409, 503)


async def test_a_wrong_call_is_refused_with_the_way_out(tmp_path: Path) -> None:
    async with administered(tmp_path) as (_, http):
        for method, target, status, words in (
            ("POST", "/sleep", 400, "name the stages: ?stage=text-encoder"),
            ("POST", "/sleep?stage=sampler", 404, 'there is no stage "sampler"; there is text-encoder, denoiser'),
            ("GET", "/sleep?stage=denoiser", 405, "/sleep takes POST, not GET"),
            ("POST", "/wake?stage=denoiser&level=1", 400, '/wake has no field "level"; it takes stage'),
            ("POST", "/nap", 404, "there is /sleep, /wake"),
        ):
            got, body = await called(http, method, target)
            assert (got, words in body["error"]["message"]) == (status, True), body
        got, body = await called(http, "POST", "/sleep?stage=denoiser&level=7")
        assert got == 400
        assert {one["error"]["code"] for one in body["replicas"]} == {"invalid_request"}


async def test_a_page_in_a_browser_cannot_make_calls(tmp_path: Path) -> None:
    async with administered(tmp_path) as (processes, http):
        status, body = await called(http, "POST", "/drain?stage=*", headers={"origin": "https://evil.example"})
        assert (status, body["error"]["code"]) == (403, "forbidden")
        assert await state(processes, "denoiser-0") == "READY"


async def test_a_port_that_is_taken_ends_the_frontend_with_the_reason(tmp_path: Path) -> None:
    async with administered(tmp_path) as (processes, _):
        plan = processes.plans["frontend-0"]
        [port] = free_ports(1)
        processes.plans["frontend-1"] = replace(plan, arguments=(*plan.arguments, "--port", str(port)))
        processes.spawn("frontend-1")
        assert await processes.wait("frontend-1", timeout_s=30) == ExitCode.LISTEN_FAILED
        assert "cannot serve the admin port 127.0.0.1" in processes.log("frontend-1")

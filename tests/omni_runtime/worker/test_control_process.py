"""A real worker process that is put to sleep, woken, profiled and drained, over gRPC and over its admin port."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import psutil
import pytest

from omni_contract.api.v1alpha1 import FakeEngine
from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.exit_codes import ExitCode
from tests.omni_runtime.worker.frontend import PATIENCE_S, start
from tests.omni_runtime.worker.stage_files import stage_file
from tests.omni_runtime.worker.worker_process import SERVING, WorkerProcess

pytestmark = pytest.mark.chaos

NOT_SERVING = 2
SLEEP = wire.SleepRequest(level=2, timeout_ms=int(PATIENCE_S * 1000))
STEPS = FakeEngine(behavior="delay", delay_seconds=0.01, steps=5)


async def status_of(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code(), refused.value.details() or ""


async def test_a_worker_that_sleeps_is_alive_and_not_ready_and_works_again_once_woken(tmp_path: Path):
    async with WorkerProcess(stage_file(), tmp_path) as worker, worker.attached() as frontend:
        assert (await worker.control.Sleep(SLEEP)).freed_bytes == 0
        assert (await worker.stub.Describe(wire.DescribeRequest())).state == wire.WORKER_STATE_ASLEEP
        stats = await worker.stats()
        assert (stats.state, stats.sleep_level) == (wire.WORKER_STATE_ASLEEP, 2)
        assert [await worker.health(one) for one in ("startup", "live", "ready")] == [SERVING, SERVING, NOT_SERVING]
        await frontend.until(lambda: frontend.load.asleep and frontend.load.draining)
        frontend.send(start("r-1"))
        assert (await frontend.terminal("r-1")).failed.code == "stage_unavailable"
        await worker.control.Wake(wire.WakeRequest())
        assert await worker.health("ready") == SERVING
        await frontend.until(lambda: not frontend.load.draining)
        frontend.send(start("r-2"))
        assert (await frontend.terminal("r-2")).HasField("finished")


async def test_a_refusal_is_a_status_with_one_sentence(tmp_path: Path):
    async with WorkerProcess(stage_file(), tmp_path) as worker:
        assert await status_of(worker.control.Sleep(wire.SleepRequest(level=3))) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            "level is 3; it must be 1 (weights to host memory) or 2 (weights dropped)",
        )
        code, text = await status_of(worker.control.StartProfile(wire.StartProfileRequest(max_steps=1)))
        assert (code, "--profile-dir" in text) == (grpc.StatusCode.UNIMPLEMENTED, True)
        await worker.control.Sleep(SLEEP)
        assert await status_of(worker.control.StartProfile(wire.StartProfileRequest(max_steps=1))) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            'stage "denoiser" is asleep; start profile needs one that is ready',
        )


@pytest.mark.case("runtime:L4")
async def test_a_worker_that_sleeps_leaves_at_once_when_it_is_told_to(tmp_path: Path):
    async with WorkerProcess(stage_file(), tmp_path) as worker:
        await worker.control.Sleep(SLEEP)
        worker.terminate()
        assert await worker.exit_code() == ExitCode.OK


async def test_a_profile_of_some_steps_is_written_as_a_chrome_trace(tmp_path: Path):
    folder = tmp_path / "traces"
    async with (
        WorkerProcess(stage_file(engine=STEPS), tmp_path, profile_dir=folder) as worker,
        worker.attached() as frontend,
    ):
        trace = Path((await worker.control.StartProfile(wire.StartProfileRequest(max_steps=3))).trace)
        assert (await worker.stats()).is_profiling
        frontend.send(start("r-1"))
        assert (await frontend.terminal("r-1")).HasField("finished")
        profile = await worker.control.StopProfile(wire.StopProfileRequest())
        assert (Path(profile.trace), profile.steps) == (trace, 3)
        assert list(folder.iterdir()) == [trace]
        assert names_in(trace) == [f"r-1 step {step}" for step in (1, 2, 3)]


async def test_a_profile_that_nobody_stops_is_written_when_the_worker_leaves(tmp_path: Path):
    async with (
        WorkerProcess(stage_file(engine=STEPS), tmp_path, profile_dir=tmp_path) as worker,
        worker.attached() as frontend,
    ):
        trace = Path((await worker.control.StartProfile(wire.StartProfileRequest(max_steps=100))).trace)
        frontend.send(start("r-1"))
        await frontend.terminal("r-1")
        worker.terminate()
        assert await worker.exit_code() == ExitCode.OK
        assert len(names_in(trace)) == 5


async def test_every_call_is_there_on_the_admin_port(tmp_path: Path, free_port: int):
    options = {"admin_port": free_port, "profile_dir": tmp_path / "traces"}
    async with (
        WorkerProcess(stage_file(), tmp_path, **options) as worker,
        worker.attached() as frontend,
        aiohttp.ClientSession(f"http://127.0.0.1:{free_port}") as http,
    ):
        assert listening(worker) == {("127.0.0.1", free_port)}
        assert await asked(http, "GET", "/stats") == (200, stats_when_ready())
        status, answer = await asked(http, "POST", "/profile/start?steps=2")
        frontend.send(start("r-1"))
        await frontend.terminal("r-1")
        assert (status, await asked(http, "POST", "/profile/stop")) == (200, (200, {**answer, "steps": 1}))
        assert await asked(http, "POST", "/cache/reset") == (200, {"entries": 1})
        assert await asked(http, "POST", "/sleep?level=1") == (200, {"freed_bytes": 0})
        assert (await asked(http, "GET", "/stats"))[1]["state"] == "asleep"
        assert await worker.health("ready") == NOT_SERVING
        status, refused = await asked(http, "POST", "/profile/start")
        assert (status, refused["error"]["code"]) == (409, "wrong_state")
        assert await asked(http, "POST", "/wake") == (200, {})
        assert await asked(http, "POST", "/drain?timeout=0") == (200, {"left_running": 0})
        assert (await worker.stub.Describe(wire.DescribeRequest())).state == wire.WORKER_STATE_DRAINING


async def test_without_a_port_the_worker_listens_nowhere_but_on_its_socket(tmp_path: Path):
    async with WorkerProcess(stage_file(), tmp_path) as worker:
        assert listening(worker) == set()


async def test_sigterm_ends_a_worker_whose_admin_port_waits_for_a_drain(tmp_path: Path, free_port: int):
    stalled = stage_file(engine=FakeEngine(behavior="stall"), drain_timeout_s=1)
    async with (
        WorkerProcess(stalled, tmp_path, admin_port=free_port) as worker,
        worker.attached() as frontend,
        aiohttp.ClientSession(f"http://127.0.0.1:{free_port}") as http,
    ):
        frontend.send(start("r-1"))
        await frontend.until(lambda: frontend.load.running == 1)
        draining = asyncio.create_task(asked(http, "POST", "/drain?timeout=600"))
        await frontend.until(lambda: frontend.load.draining)
        worker.terminate()
        assert await worker.exit_code() == ExitCode.DRAIN_TIMED_OUT
        await asyncio.wait([draining])


def listening(worker: WorkerProcess) -> set[tuple[str, int]]:
    connections = psutil.Process(worker.pid).net_connections("tcp")
    return {tuple(one.laddr) for one in connections if one.status == psutil.CONN_LISTEN}


def stats_when_ready() -> dict[str, object]:
    counters = ("running", "waiting", "payloads", "payload_bytes", "requests_total", "cancelled_total", "failed_total")
    return {"state": "ready", "sleep_level": 0, "is_profiling": False, **dict.fromkeys(counters, 0)}


async def asked(http: aiohttp.ClientSession, method: str, path: str) -> tuple[int, dict[str, Any]]:
    async with http.request(method, path) as answer:
        return answer.status, await answer.json()


def names_in(trace: Path) -> list[str]:
    return [event["name"] for event in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]]

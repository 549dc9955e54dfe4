"""A real worker process: probes, drain, exit codes, capacity, and what the operating system says it holds."""

import asyncio
import json
import os
import signal
import sys
import urllib.request
from pathlib import Path
from socket import socket

import grpc
import pytest

from omni_contract.api.v1alpha1 import FakeEngine
from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.codec import decode
from omni_contract.wire.exit_codes import ExitCode
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Array
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.store import PayloadStore
from tests.omni_runtime.worker.frontend import PATIENCE_S, cancel, discard, start
from tests.omni_runtime.worker.stage_files import edge, image_output, stage_file
from tests.omni_runtime.worker.worker_process import SERVING, WorkerProcess
from tests.support.process_census import census, growth, is_running
from tests.support.waiting import settled
from tests.support.worker_stats import holds_nothing, stats_when

pytestmark = pytest.mark.chaos

NOT_SERVING = 2
LARGE_SIDE = 300


async def test_a_worker_describes_itself_and_answers_its_probes(tmp_path: Path):
    file = stage_file(
        inputs=(edge("text", "denoiser", at="denoiser"),), outputs=(edge("denoiser", "vae", at="denoiser"),)
    )
    async with WorkerProcess(file, tmp_path) as worker:
        info = await worker.stub.Describe(wire.DescribeRequest())
        assert (info.model, info.stage, info.revision, info.replica) == ("painter", "denoiser", "r1", "denoiser-0")
        assert [(e.edge, e.contract_hash) for e in (*info.inputs, *info.outputs)] == [
            ("text->denoiser", "same"),
            ("denoiser->vae", "same"),
        ]
        assert info.state == wire.WORKER_STATE_READY and info.boot_id and list(info.connectors)
        assert [await worker.health(service) for service in ("", "startup", "live", "ready")] == [SERVING] * 4
        with pytest.raises(grpc.aio.AioRpcError, match="services are startup, live, ready"):
            await worker.health("mood")


async def test_an_image_larger_than_a_message_is_fetched_by_handle(tmp_path: Path):
    async with (
        WorkerProcess(stage_file(output=image_output()), tmp_path) as worker,
        worker.attached() as frontend,
    ):
        frontend.send(start("r-1", width=LARGE_SIDE, height=LARGE_SIDE, seed=7))
        await frontend.terminal("r-1")
        connectors = ConnectorSet("", "frontend", PayloadStore(2**30))
        image = (await connectors.get(frontend.of("r-1")[1].outputs[0].handle, PATIENCE_S))["image"]
        assert isinstance(image, Array) and image.shape == (LARGE_SIDE, LARGE_SIDE, 3)
        frontend.send(discard("r-1"))
        await until_empty(worker)
        await connectors.close()


async def test_a_consumer_takes_its_input_from_the_producers_worker_and_releases_it(tmp_path: Path):
    pair = edge("text", "denoiser", at="text", connector="grpc")
    producer_file = stage_file("text", outputs=(pair,))
    consumer_file = stage_file("denoiser", inputs=(edge("text", "denoiser", at="denoiser", connector="grpc"),))
    async with (
        WorkerProcess(producer_file, tmp_path) as producer,
        WorkerProcess(consumer_file, tmp_path) as consumer,
        producer.attached() as first,
        consumer.attached() as second,
    ):
        first.send(start("r-1", payload={"prompt": "a fox"}, outputs=(pair.edge,)))
        await first.terminal("r-1")
        handle = first.of("r-1")[1].outputs[0].handle
        assert (await producer.stats()).payloads == 1
        second.send(start("r-1", inputs=[wire.Input(edge=pair.edge, handle=handle)]))
        await second.terminal("r-1")
        assert decode(second.of("r-1")[1].outputs[0].inline) == {"prompt": "a fox", "trail": ["text", "denoiser"]}
        await until_empty(producer)


async def test_an_input_that_must_last_until_the_end_is_not_released_by_its_consumer(tmp_path: Path):
    pair = edge("text", "denoiser", at="text", connector="grpc", retain="terminal")
    reader = edge("text", "denoiser", at="denoiser", connector="grpc", retain="terminal")
    async with (
        WorkerProcess(stage_file("text", outputs=(pair,)), tmp_path) as producer,
        WorkerProcess(stage_file("denoiser", inputs=(reader,)), tmp_path) as consumer,
        producer.attached() as first,
        consumer.attached() as second,
    ):
        first.send(start("r-1", outputs=(pair.edge,)))
        await first.terminal("r-1")
        source = wire.Input(edge=pair.edge, handle=first.of("r-1")[1].outputs[0].handle)
        for attempt in (1, 2):
            second.send(start("r-1", attempt=attempt, inputs=[source]))
            assert (await second.terminal("r-1", attempt)).HasField("finished")
        assert (await producer.stats()).payloads == 1
        first.send(discard("r-1"))
        await until_empty(producer)


async def test_an_input_whose_owner_died_is_a_retryable_transfer_failure(tmp_path: Path):
    pair = edge("text", "denoiser", at="text", connector="grpc")
    async with WorkerProcess(stage_file("denoiser"), tmp_path) as consumer, consumer.attached() as second:
        async with WorkerProcess(stage_file("text", outputs=(pair,)), tmp_path) as producer:
            async with producer.attached() as first:
                first.send(start("r-1", outputs=(pair.edge,)))
                await first.terminal("r-1")
            source = wire.Input(edge=pair.edge, handle=first.of("r-1")[1].outputs[0].handle)
        second.send(start("r-1", inputs=[source]))
        failure = (await second.terminal("r-1")).failed
        assert (failure.code, failure.retryable) == ("transfer_failed", True)
        assert 'edge "text->denoiser": owner unix:' in failure.message


@pytest.mark.case("runtime:L4")
async def test_a_drain_under_load_loses_no_request_and_exits_with_0(tmp_path: Path):
    file = stage_file(engine=FakeEngine(behavior="delay", delay_seconds=0.05, steps=4), max_in_flight=16)
    async with WorkerProcess(file, tmp_path) as worker, worker.attached() as frontend:
        frontend.send(*(start(f"r-{i}") for i in range(32)))
        await frontend.until(lambda: sum(m.HasField("progress") for m in frontend.messages) > 0)
        worker.terminate()
        await frontend.until(lambda: frontend.load.draining)
        assert await worker.health("ready") == NOT_SERVING
        assert await worker.health("live") == SERVING
        frontend.send(start("r-late"))
        assert (await frontend.terminal("r-late")).failed.code == "stage_unavailable"
        assert await worker.exit_code() == ExitCode.OK
        assert await frontend.ended() is grpc.StatusCode.OK
        assert [len(frontend.terminals(f"r-{i}")) for i in range(32)] == [1] * 32
        assert all(frontend.terminals(f"r-{i}")[0].HasField("finished") for i in range(32))


async def test_a_drained_worker_stays_until_its_payloads_are_no_longer_wanted(tmp_path: Path):
    async with WorkerProcess(stage_file(output=image_output()), tmp_path) as worker, worker.attached() as frontend:
        frontend.send(start("r-1", width=LARGE_SIDE, height=LARGE_SIDE))
        await frontend.terminal("r-1")
        worker.terminate()
        await frontend.until(lambda: frontend.load.draining)
        connectors = ConnectorSet("", "frontend", PayloadStore(2**30))
        await connectors.get(frontend.of("r-1")[1].outputs[0].handle, PATIENCE_S)
        await connectors.close()
        assert worker.process.returncode is None
        frontend.send(discard("r-1"))
        assert await worker.exit_code() == ExitCode.OK


async def test_a_drain_ends_at_its_deadline_and_says_what_it_gave_up(tmp_path: Path):
    file = stage_file(engine=FakeEngine(behavior="stall"), drain_timeout_s=1)
    async with WorkerProcess(file, tmp_path) as worker, worker.attached() as frontend:
        frontend.send(start("r-1"))
        await frontend.until(lambda: frontend.load.running == 1)
        worker.terminate()
        assert await worker.exit_code() == ExitCode.DRAIN_TIMED_OUT
        assert "drain deadline of 1 s passed: 1 requests and 0 payloads are given up" in worker.log


async def test_the_drain_call_reports_what_it_left_running(tmp_path: Path):
    async with (
        WorkerProcess(stage_file(engine=FakeEngine(behavior="stall")), tmp_path) as worker,
        worker.attached() as frontend,
    ):
        frontend.send(start("r-1"))
        await frontend.until(lambda: frontend.load.running == 1)
        assert (await worker.control.Drain(wire.DrainRequest(timeout_ms=50))).left_running == 1
        frontend.send(cancel("r-1"))
        assert (await worker.control.Drain(wire.DrainRequest(timeout_ms=20_000))).left_running == 0
        assert worker.process.returncode is None


@pytest.mark.case("runtime:M1")
async def test_frontends_killed_mid_request_leave_nothing_in_the_worker(tmp_path: Path):
    file = stage_file(output=image_output(), max_in_flight=8)
    async with WorkerProcess(file, tmp_path) as worker:
        await attach_and_vanish(worker)
        before = {"worker": census(worker.pid)}
        for _ in range(5):
            await attach_and_vanish(worker)
        after = settled(
            lambda: {"worker": census(worker.pid)}, lambda now: not growth(before, now, 16_384), within_s=10
        )
        assert growth(before, after, slack_kib=16_384) == []


async def test_the_leaking_engine_is_caught_by_the_same_census(tmp_path: Path):
    file = stage_file(engine=FakeEngine(behavior="leak"), max_in_flight=8)
    async with WorkerProcess(file, tmp_path) as worker:
        await attach_and_vanish(worker)
        before = {"worker": census(worker.pid)}
        await attach_and_vanish(worker)
        assert "memory_files" in {found.what for found in growth(before, {"worker": census(worker.pid)}, 16_384)}


async def test_a_broken_stream_stops_its_work_and_leaves_other_frontends_alone(tmp_path: Path):
    file = stage_file(engine=FakeEngine(behavior="delay", delay_seconds=0.05, steps=20), max_in_flight=8)
    async with WorkerProcess(file, tmp_path) as worker, worker.attached() as other:
        other.send(start("r-1"))
        async with worker.attached() as frontend:
            frontend.send(start("r-1"), start("r-2"))
            await frontend.until(lambda: frontend.load.running == 3)
        await other.until(lambda: other.load.running == 1)
        assert (await other.terminal("r-1")).HasField("finished")


async def test_an_engine_that_dies_ends_the_process_with_one_sentence(tmp_path: Path):
    file = stage_file(engine=FakeEngine(behavior="crash", crash_at=2))
    async with WorkerProcess(file, tmp_path) as worker, worker.attached() as frontend:
        frontend.send(start("r-1"))
        await frontend.terminal("r-1")
        frontend.send(start("r-2"))
        assert await worker.exit_code() == ExitCode.ENGINE_DIED
        errors = [line["message"] for line in worker.log_lines if line["level"] == "ERROR"]
        assert errors == ['the engine of stage "denoiser" died: the fake engine is told to crash at step 2']
        assert [len(frontend.terminals(f"r-{i}")) for i in (1, 2)] == [1, 1]


async def test_a_stage_that_cannot_load_says_why_and_exits(tmp_path: Path):
    file = stage_file(engine=FakeEngine(behavior="crash", crash_at=0))
    async with WorkerProcess(file, tmp_path, wait_ready=False) as worker:
        assert await worker.exit_code() == ExitCode.LOAD_FAILED
        errors = [line["message"] for line in worker.log_lines if line["level"] == "ERROR"]
        assert errors == ['stage "denoiser" cannot load: RuntimeError: the fake engine is told to crash while it loads']


@pytest.mark.parametrize("taken", ["grpc", "metrics"])
async def test_an_address_in_use_is_named_in_one_sentence(tmp_path: Path, taken: str):
    with socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        options = {"metrics_port": port} if taken == "metrics" else {"listen": f"127.0.0.1:{port}"}
        async with WorkerProcess(stage_file(), tmp_path, wait_ready=False, **options) as worker:
            assert await worker.exit_code() == ExitCode.LISTEN_FAILED
            [error] = [line["message"] for line in worker.log_lines if line["level"] == "ERROR"]
            assert str(port) in error and "Traceback" not in worker.log


async def test_a_stage_file_that_cannot_be_read_is_named(tmp_path: Path):
    async with WorkerProcess(stage_file(), tmp_path, wait_ready=False, stage_file=tmp_path / "absent.json") as worker:
        assert await worker.exit_code() == ExitCode.MISCONFIGURED
        assert "absent.json cannot be used" in worker.log and "Traceback" not in worker.log


async def test_a_stalled_engine_fails_liveness_but_its_requests_end_at_their_deadline(tmp_path: Path):
    file = stage_file(engine=FakeEngine(behavior="stall"))
    async with (
        WorkerProcess(file, tmp_path, liveness_timeout=0.05) as worker,
        worker.attached() as frontend,
    ):
        frontend.send(start("r-1", remaining_s=0.5))
        await frontend.until(lambda: frontend.load.running == 1)
        await asyncio.sleep(0.1)
        assert await worker.health("live") == NOT_SERVING
        assert (await frontend.terminal("r-1")).failed.code == "deadline_exceeded"
        assert await worker.health("live") == SERVING


@pytest.mark.case("runtime:L2")
async def test_a_worker_dies_with_a_parent_that_was_killed(tmp_path: Path):
    command = WorkerProcess(stage_file(), tmp_path).command
    parent_code = (
        "import json, subprocess, sys;"
        "p = subprocess.Popen(json.loads(sys.argv[1]), stderr=subprocess.PIPE, text=True);"
        "[0 for line in p.stderr if '\"ready\"' in line and print(p.pid, flush=True)]"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", parent_code, json.dumps(command), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        pid = int(await parent.stdout.readline())
    assert is_running(pid)
    os.kill(parent.pid, signal.SIGKILL)
    await parent.wait()
    assert not settled(lambda: is_running(pid), lambda running: not running, within_s=5)


async def test_every_line_about_a_request_that_fails_here_carries_its_id_and_its_stage(tmp_path: Path):
    async with WorkerProcess(stage_file(), tmp_path) as worker, worker.attached() as frontend:
        garbage = [wire.Input(edge=FINAL, inline=b"garbage")]
        frontend.send(start("r-1", inputs=garbage), start("r-2", inputs=garbage), start("r-3"))
        for name in ("r-1", "r-2", "r-3"):
            await frontend.terminal(name)
        worker.terminate()
        await worker.exit_code()
        about = [line for line in worker.log_lines if line["message"].startswith("request ")]
        assert {line["request_id"] for line in about} == {"r-1", "r-2"}
        assert {(line["stage"], line["replica"]) for line in worker.log_lines[1:]} == {("denoiser", "denoiser-0")}


async def test_metrics_are_served_over_http(tmp_path: Path, free_port: int):
    async with (
        WorkerProcess(stage_file(), tmp_path, metrics_port=free_port) as worker,
        worker.attached() as frontend,
    ):
        frontend.send(start("r-1"))
        await frontend.terminal("r-1")
        text = await asyncio.to_thread(scrape, free_port)
        assert 'omni_worker_requests_total{outcome="finished"} 1.0' in text
        assert "omni_worker_frontends 1.0" in text and "omni_worker_ready 1.0" in text


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as reply:
        return str(reply.read().decode())


async def attach_and_vanish(worker: WorkerProcess) -> None:
    """Eight requests of a frontend process, some answered and held, when it is killed."""
    doomed = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.omni_runtime.worker.doomed_frontend",
        worker.address,
        str(LARGE_SIDE),
        stdout=asyncio.subprocess.PIPE,
    )
    assert doomed.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        assert await doomed.stdout.readline() == b"answered\n"
    doomed.kill()
    await doomed.wait()
    await until_empty(worker)


async def until_empty(worker: WorkerProcess) -> None:
    """A broken stream sends no answer that one could wait for, so this asks until the worker holds nothing."""
    await stats_when(worker.address, holds_nothing, within_s=PATIENCE_S)

"""What a machine does to healthy processes: memory runs full, logs block, the clock jumps, a neighbour freezes."""

import asyncio
import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from omni_contract.api.v1alpha1 import ConnectorSpec, FakeEngine
from omni_contract.wire.exit_codes import ExitCode
from tests.support.fake_chain import STAGES, fake_chain
from tests.support.faketime import Clock, faked_clock, sweep
from tests.support.model_processes import ModelProcesses, model_processes
from tests.support.picture_client import client, expected, picture, raw_request, routable_replicas, wrong_pictures
from tests.support.worker_stats import holds_nothing, stats_when

STEPS = FakeEngine(behavior="delay", delay_seconds=0.02, steps=3)
SLOW = FakeEngine(behavior="delay", delay_seconds=0.1, steps=130)
"""Goes on longer than it takes to find that its frontend is frozen."""
EVICTED_S = 2.0
LOOKS_S = 0.5
"""What one look at the frontend's metrics may take on a busy machine."""
FREED_S = 10
SETTLE_S = 10
DAY_S = 86_400


async def all_hold_nothing(processes: ModelProcesses) -> None:
    for name in processes.stages:
        await stats_when(processes.plans[name].health, holds_nothing, within_s=SETTLE_S)


def with_arguments(processes: ModelProcesses, name: str, *arguments: str) -> None:
    plan = processes.plans[name]
    processes.plans[name] = replace(plan, arguments=(*plan.arguments, *arguments))


@pytest.fixture
def small_memory(tmp_path: Path) -> Iterator[Path]:
    """A memory volume as a pod has one, with room for the arenas of two stages."""
    folder = tmp_path / "memory"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Not a page is left."""
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(2**20))
        except OSError:
            return


async def test_a_memory_volume_that_runs_full_costs_no_request(tmp_path: Path, small_memory: Path) -> None:
    shm = ConnectorSpec.model_validate({"name": "memory", "shm": {"size": "16Mi"}})
    model = fake_chain(usual=STEPS, connector="memory", connectors=(shm,))
    with model_processes(model, tmp_path) as processes:
        for name in STAGES:
            with_arguments(processes, name, "--shared-memory", str(small_memory))
        await processes.start()
        fill(small_memory)
        assert await wrong_pictures(processes.urls, range(40)) == []
        await all_hold_nothing(processes)
        processes.kill("text-encoder")
        processes.spawn("text-encoder")
        # The dead one's arena is swept, and its room is enough for the new one's.
        await processes.wait_ready("text-encoder")
        assert await wrong_pictures(processes.urls, range(40)) == []


async def test_a_stage_that_starts_beside_a_full_memory_volume_says_so(tmp_path: Path, small_memory: Path) -> None:
    shm = ConnectorSpec.model_validate({"name": "memory", "shm": {"size": "16Mi"}})
    with model_processes(fake_chain(connector="memory", connectors=(shm,)), tmp_path) as processes:
        with_arguments(processes, "text-encoder", "--shared-memory", str(small_memory))
        fill(small_memory)
        processes.spawn("text-encoder")
        assert await processes.wait("text-encoder", timeout_s=30) == ExitCode.MISCONFIGURED
        assert f"{small_memory} gives no 16,777,216 bytes" in processes.log("text-encoder")


@contextmanager
def unread_log(tmp_path: Path, name: str) -> Iterator[int]:
    """The process writes into a pipe that is soon full, as under a log collector whose disk is. The reading end."""
    path = tmp_path / f"{name}.log"
    os.mkfifo(path)
    reading_end = os.open(path, os.O_RDWR)
    fcntl.fcntl(reading_end, fcntl.F_SETPIPE_SZ, 4096)
    yield reading_end
    os.close(reading_end)


@pytest.mark.parametrize("name", ["denoiser", "frontend-0"])
async def test_a_process_whose_log_nobody_reads_goes_on(tmp_path: Path, name: str) -> None:
    with unread_log(tmp_path, name) as reading_end, model_processes(fake_chain(usual=STEPS), tmp_path) as processes:
        with_arguments(processes, name, "--log-level", "debug")
        await processes.start()
        assert await wrong_pictures(processes.urls, range(100)) == []
        assert len(os.read(reading_end, 2**16)) > 3000, "the pipe was to be full"
        await all_hold_nothing(processes)


@pytest.fixture
def swept_memory() -> Iterator[None]:
    yield
    sweep()


@pytest.mark.usefixtures("swept_memory")
@pytest.mark.parametrize("jump_s", [DAY_S, -DAY_S])
async def test_a_clock_that_jumps_by_a_day_changes_no_answer(tmp_path: Path, jump_s: int) -> None:
    async def jump_one_by_one(clocks: dict[str, Clock]) -> None:
        for clock in clocks.values():
            await asyncio.sleep(0.3)
            clock.jump(jump_s)

    with model_processes(fake_chain(usual=STEPS, connector="grpc"), tmp_path) as processes:
        clocks = {name: faked_clock(tmp_path / f"{name}.clock") for name in processes.plans}
        for name, clock in clocks.items():
            plan = processes.plans[name]
            processes.plans[name] = replace(plan, environment={**plan.environment, **clock.environment})
        await processes.start()
        jumping = asyncio.create_task(jump_one_by_one(clocks))
        wrong, round_size = [], 12
        while not jumping.done():
            wrong += await wrong_pictures(processes.urls, range(round_size))
        await jumping
        assert wrong + await wrong_pictures(processes.urls, range(round_size)) == []
        await all_hold_nothing(processes)


@pytest.mark.case("runtime:L13")
async def test_a_stage_that_freezes_gets_no_work_two_seconds_later(tmp_path: Path) -> None:
    with model_processes(fake_chain(usual=STEPS, replicas=2), tmp_path) as processes:
        await processes.start()
        assert await routable_replicas(processes.urls[0], "denoiser") == 2
        processes.signal("denoiser-0", signal.SIGSTOP)
        await asyncio.sleep(EVICTED_S + LOOKS_S)
        assert await routable_replicas(processes.urls[0], "denoiser") == 1
        processes.signal("denoiser-0", signal.SIGCONT)
        assert await wrong_pictures(processes.urls, range(40)) == []


async def test_the_work_of_a_frontend_that_freezes_is_freed_and_no_other(tmp_path: Path) -> None:
    """As a node that is gone without a word: its connections are half open."""
    stage = "denoiser"
    with model_processes(fake_chain({stage: SLOW}, connector="grpc"), tmp_path, frontends=2) as processes:
        await processes.start()
        address = processes.plans[stage].health
        doomed = [asyncio.create_task(raw_request(processes.urls[0], seed, 60)) for seed in range(3)]
        await stats_when(address, lambda now: now.running == 3, within_s=SETTLE_S)
        spared = [asyncio.create_task(picture(client(processes.urls[1]), seed)) for seed in range(2)]
        await stats_when(address, lambda now: now.running == 5, within_s=SETTLE_S)
        processes.signal("frontend-0", signal.SIGSTOP)
        await stats_when(address, lambda now: now.running == 2, within_s=FREED_S)
        assert await asyncio.gather(*spared) == [expected(0), expected(1)]
        for task in doomed:
            task.cancel()
        await asyncio.gather(*doomed, return_exceptions=True)
        await all_hold_nothing(processes)

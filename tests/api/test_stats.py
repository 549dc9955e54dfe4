"""`--log-stats` and `--stats-dir` of a real frontend with real workers."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from httpx2 import AsyncClient

from omni_contract.api.v1alpha1 import FakeEngine
from omni_runtime.statistics.files import KINDS
from tests.api.test_metrics import figure
from tests.support.fake_chain import SIDE, STAGES, fake_chain
from tests.support.model_processes import ModelProcesses, model_processes
from tests.support.picture_client import client, expected, picture

DENOISER = FakeEngine(behavior="delay", delay_seconds=0.01, steps=3)


@asynccontextmanager
async def telling(folder: Path, *flags: str) -> AsyncIterator[ModelProcesses]:
    with model_processes(fake_chain({"denoiser": DENOISER}, connector="grpc"), folder) as processes:
        plan = processes.plans["frontend-0"]
        processes.plans["frontend-0"] = replace(plan, arguments=(*plan.arguments, *flags))
        await processes.start()
        yield processes


async def painted(processes: ModelProcesses, seed: int) -> bytes:
    async with client(processes.urls[0]) as openai:
        return await picture(openai, seed)


async def end(processes: ModelProcesses) -> None:
    """By SIGTERM, after which all that was told is written."""
    processes.signal("frontend-0", signal.SIGTERM)
    assert await processes.wait("frontend-0", timeout_s=10) == 0


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    [path] = folder.glob(f"*.{kind}.stats.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_a_finished_request_is_a_table_in_the_log(tmp_path: Path) -> None:
    async with telling(tmp_path, "--log-stats") as processes:
        await painted(processes, 1)
        await end(processes)
        records = [json.loads(line) for line in processes.log("frontend-0").splitlines() if line.startswith("{")]
    [told] = [record for record in records if record["message"].startswith("statistics\n")]
    table = told["message"]
    assert f"[request_id={told['request_id']}]" in table
    assert f"{SIDE}x{SIDE}" in table
    for word in (*STAGES, "denoiser->vae-decoder", "e2e_stage_denoiser_wall_time_ms", "transfers_total_kbytes"):
        assert word in table, table


async def test_each_request_stage_and_edge_is_a_line_in_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "stats"
    async with telling(tmp_path, "--stats-dir", str(folder)) as processes:
        for seed in range(3):
            await painted(processes, seed)
        await end(processes)
    overall, stages, edges = (lines(folder, kind) for kind in KINDS)
    assert [line["outcome"] for line in overall] == ["finished"] * 3
    assert [line["stage"] for line in stages] == list(STAGES) * 3
    assert len(edges) == 6
    for request in overall:
        own = [line for line in stages if line["request_id"] == request["request_id"]]
        [denoised] = [line for line in own if line["stage"] == "denoiser"]
        assert denoised["stage_gen_time_ms"] >= 1000 * DENOISER.steps * DENOISER.delay_seconds - 1
        assert sum(line["wall_time_ms"] for line in own) <= request["e2e_total_ms"]
        moved = [line for line in edges if line["request_id"] == request["request_id"]]
        assert abs(sum(line["total_time_ms"] for line in moved) - request["transfers_total_time_ms"]) < 0.01
        assert all(line["size_kbytes"] > 0 and line["tx_time_ms"] > 0 for line in moved)


async def test_a_disk_that_fills_up_fails_no_request_and_is_told_once(tmp_path: Path) -> None:
    folder = tmp_path / "stats"
    async with telling(tmp_path, "--stats-dir", str(folder)) as processes:
        for kind in KINDS:
            (folder / f"{os.uname().nodename}-{processes.pid('frontend-0')}.{kind}.stats.jsonl").symlink_to("/dev/full")
        pictures = await asyncio.gather(*(painted(processes, seed) for seed in range(8)))
        assert pictures == [expected(seed) for seed in range(8)]
        async with AsyncClient(trust_env=False) as http:
            text = (await http.get(f"{processes.urls[0]}/metrics")).text
        await end(processes)
        log = processes.log("frontend-0")
    assert log.count("statistics are lost, requests go on") == 1
    assert "No space left on device" in log
    assert figure(text, "omni_frontend_stats_requests_total", outcome="written") == 0


async def test_a_folder_that_cannot_be_used_ends_the_frontend_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with model_processes(fake_chain(), tmp_path) as processes:
        plan = processes.plans["frontend-0"]
        stats = ("--stats-dir", str(tmp_path / "file" / "stats"))
        processes.plans["frontend-0"] = replace(plan, arguments=(*plan.arguments, *stats))
        processes.spawn("frontend-0")
        assert await processes.wait("frontend-0", timeout_s=30) == 2
        assert "no statistics can be written to" in processes.log("frontend-0")

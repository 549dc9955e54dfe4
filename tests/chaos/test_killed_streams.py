"""Three streaming stages as processes: either end of a stream is killed, or the client leaves, while chunks travel."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from omni_contract.resolve import ResolvedModel
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_table import StageTable
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from omni_runtime.orchestrator.orchestrator import Orchestrator
from omni_runtime.orchestrator.request import FinalChunk, SessionRequest, SessionResult
from omni_runtime.orchestrator.settings import OrchestratorSettings
from tests.support.model_processes import ModelProcesses, model_processes
from tests.support.process_census import Growth, ProcessCensus, growth
from tests.support.stage_servers import fake_model_of
from tests.support.waiting import settled
from tests.support.worker_stats import holds_nothing, stats_when

STAGES = ("thinker", "talker", "vocoder")
ITEMS = 60
STEP_S = 0.01
AT_ONCE = 12
MOST_DISTURBANCES = 5
SETTLE_S = 10
SLACK_KIB = 24 * 1024
ids = count()


def streaming_model(in_parts: bool, replicas: int = 2) -> ResolvedModel:
    """Items trickle through all three stages; the last answers part by part or, once it has all of them, as a whole."""
    behaviors = ("burst", "relay", "relay" if in_parts else "echo")
    stages: dict[str, dict[str, Any]] = {
        name: {"fake": {"behavior": behavior}, "replicas": replicas}
        for name, behavior in zip(STAGES, behaviors, strict=True)
    }
    stages["thinker"]["fake"] |= {"steps": ITEMS, "delaySeconds": STEP_S}
    stages["vocoder"]["output"] = {"modality": "video"}
    streaming = {"chunkFrames": 4, "initialChunkFrames": 1}
    edges = [{"from": one, "to": other, "streaming": streaming} for one, other in pairwise(STAGES)]
    return fake_model_of(stages, edges)


@asynccontextmanager
async def orchestrating(processes: ModelProcesses, directory: Path) -> AsyncIterator[Orchestrator]:
    await processes.start(*processes.stages)
    table = StageTable.read((directory / "stage-table.json").read_bytes())
    settings = OrchestratorSettings(frontend_id="frontend-1")
    async with Orchestrator(table, LocalDiscovery(table), settings).running() as orchestrator:
        await every_replica_takes_work(orchestrator)
        yield orchestrator


async def every_replica_takes_work(orchestrator: Orchestrator) -> None:
    """One of each stage is enough to be ready, and then the one that is to be killed may get nothing."""
    async with asyncio.timeout(SETTLE_S):
        await orchestrator.wait_ready()
        while not all(replica.is_routable for stage in orchestrator.stages() for replica in stage.replicas):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def asking() -> SessionRequest:
    name = f"r{next(ids)}"
    return SessionRequest(name, {"prompt": name}, timeout_s=60)


async def ask(orchestrator: Orchestrator) -> str:
    """What is wrong with the answer to one request; nothing if it is right."""
    request = asking()
    try:
        items = items_of(await orchestrator.run(request))
    except OmniError as error:
        return str(error)
    return "" if items == [(request.request_id, number) for number in range(ITEMS)] else f"{items}"


def items_of(result: SessionResult) -> list[tuple[object, object]]:
    whole = [item for output in result.outputs for item in output.payload["items"]]  # type: ignore[union-attr]
    return [(item["prompt"], item["item"]) for item in whole]  # type: ignore[index, call-overload]


async def wrong_answers(orchestrator: Orchestrator) -> list[str]:
    return [wrong for wrong in await asyncio.gather(*(ask(orchestrator) for _ in range(AT_ONCE))) if wrong]


async def all_hold_nothing(processes: ModelProcesses) -> None:
    for name in processes.stages:
        await stats_when(processes.plans[name].health, holds_nothing, within_s=SETTLE_S)


async def census_is_back_after(processes: ModelProcesses, disturb: Callable[[], Awaitable[None]], lost: str) -> None:
    """A disturbance must leave no more than there was before. The first ones may: a worker keeps one channel to each
    neighbour that it has read from, and chance decides who reads from whom. What leaks does so every time."""
    grown: list[Growth] = []
    for _ in range(MOST_DISTURBANCES):
        before = {name: now for name, now in processes.census().items() if name != lost}
        await disturb()
        await all_hold_nothing(processes)
        grown = await asyncio.to_thread(_settled_growth, processes, before)
        if not grown:
            return
    raise AssertionError(f"grows with every disturbance: {grown}")


def _settled_growth(processes: ModelProcesses, before: dict[str, ProcessCensus]) -> list[Growth]:
    return settled(lambda: growth(before, processes.census(), SLACK_KIB), lambda found: not found, within_s=3)


@pytest.mark.case("runtime:C3", "runtime:L13")
@pytest.mark.parametrize("victim", STAGES)
async def test_a_process_killed_in_the_middle_of_its_streams_costs_no_request(tmp_path: Path, victim: str) -> None:
    with model_processes(streaming_model(in_parts=False), tmp_path) as processes:
        async with orchestrating(processes, tmp_path) as orchestrator:

            async def kill_under_load() -> None:
                asked = asyncio.create_task(wrong_answers(orchestrator))
                await stats_when(processes.plans[f"{victim}-0"].health, lambda now: now.running > 0, SETTLE_S)
                await asyncio.sleep(ITEMS * STEP_S / 3)
                processes.kill(f"{victim}-0")
                assert await asked == []
                await processes.start(f"{victim}-0")
                assert await wrong_answers(orchestrator) == []
                await every_replica_takes_work(orchestrator)

            await census_is_back_after(processes, kill_under_load, lost=f"{victim}-0")


@pytest.mark.case("runtime:C3")
@pytest.mark.parametrize("victim", STAGES)
async def test_after_the_first_part_a_killed_process_ends_the_answer_with_a_clear_error(
    tmp_path: Path, victim: str
) -> None:
    with model_processes(streaming_model(in_parts=True, replicas=1), tmp_path) as processes:
        async with orchestrating(processes, tmp_path) as orchestrator:
            session = orchestrator.submit(asking())
            assert isinstance(await anext(session), FinalChunk)
            processes.kill(victim)
            with pytest.raises(OmniError) as caught:
                async for _ in session:
                    pass
            assert caught.value.code in (ErrorCode.STAGE_UNAVAILABLE, ErrorCode.TRANSFER_FAILED)
            await processes.start(victim)
            await all_hold_nothing(processes)


@pytest.mark.case("runtime:C1", "runtime:C2", "runtime:C5", "runtime:L30")
async def test_clients_that_leave_in_the_middle_of_a_stream_leave_nothing_behind(tmp_path: Path) -> None:
    with model_processes(streaming_model(in_parts=True, replicas=1), tmp_path) as processes:
        async with orchestrating(processes, tmp_path) as orchestrator:

            async def leave(parts: int) -> None:
                async with orchestrator.submit(asking()) as session:
                    for _ in range(parts):
                        assert isinstance(await anext(session), FinalChunk)

            async def leave_at_every_part() -> None:
                for parts in range(0, ITEMS, 6):
                    await asyncio.gather(*(leave(parts) for _ in range(AT_ONCE)))

            await census_is_back_after(processes, leave_at_every_part, lost="")
            assert orchestrator.open_sessions == 0

"""An ar stage as a real worker process, driven by the orchestrator over its socket."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.resolve import StageLocation, resolve, stage_file, stage_table
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from omni_runtime.orchestrator.orchestrator import Orchestrator
from omni_runtime.orchestrator.request import FinalChunk, SessionRequest, SessionResult
from omni_runtime.orchestrator.settings import OrchestratorSettings
from omni_runtime.worker.outputs import PARTS_AHEAD
from tests.models import tiny_text
from tests.models.ar_engines import SMALL, judged
from tests.omni_runtime.worker.worker_process import WorkerProcess
from tests.support.model_files import catalog
from tests.support.process_census import is_running
from tests.support.waiting import settled
from tests.support.worker_stats import holds_nothing, stats_when

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROMPT = [3, 5, 7, 11]
GREEDY = {"temperature": 0.0, "max_tokens": 16, "min_tokens": 16}
START_S = 300
"""vLLM's imports alone take a minute where many want the processor."""


class World:
    def __init__(self, worker: WorkerProcess, orchestrator: Orchestrator, model: Path) -> None:
        self.worker = worker
        self.orchestrator = orchestrator
        self.model = model

    async def answer(self, request_id: str, prompt: list[int], **parameters) -> tuple[list[int], SessionResult]:
        result = await self.orchestrator.run(SessionRequest(request_id, {"prompt_token_ids": prompt}, parameters))
        items = [item for chunk in result.chunks for item in chunk.items]
        return [token_id for item in items for token_id in item["token_ids"]], result


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[World]:
    tiny_text.build(folder / "models" / "tiny")
    spec = OmniModelSpec.model_validate(
        {
            "model": {"source": "pvc://models/tiny"},
            "stages": [{"name": "writer", "ar": SMALL, "output": {"modality": "text"}, "accelerator": {"pool": "cpu"}}],
        }
    )
    model = resolve("writer", "default", spec, catalog())
    async with WorkerProcess(stage_file(model, "writer", "r1", str(folder)), folder, wait_ready=False) as worker:
        await worker.until_serving("ready", patience_s=START_S)
        table = stage_table(model, "r1", 0, lambda _: StageLocation(addresses=(worker.address,)))
        orchestrator = Orchestrator(table, LocalDiscovery(table), OrchestratorSettings(frontend_id="frontend-1"))
        async with orchestrator.running():
            await orchestrator.wait_ready()
            yield World(worker, orchestrator, folder / "models" / "tiny")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    async with running(tmp_path_factory.mktemp("ar")) as world:
        yield world


async def test_tokens_stream_through_the_worker_and_equal_transformers(world):
    token_ids, result = await world.answer("one", PROMPT, **GREEDY)
    wanted = judged(world.model, [{"prompt_token_ids": PROMPT, "max_new_tokens": 16, "min_new_tokens": 16}])
    assert [token_ids] == wanted
    usage = result.usage["writer"]
    assert (usage.input_tokens, usage.output_tokens) == (4, 16)


async def test_loading_is_told_step_by_step(world):
    lines = [line["message"] for line in world.worker.log_lines]
    assert lines.index("importing vLLM") < lines.index("loading tiny") < lines.index("running a self-test")
    assert lines.index("running a self-test") < lines.index("ready")


async def test_a_wrong_request_hurts_no_neighbour(world):
    beside = asyncio.create_task(world.answer("good", PROMPT, **GREEDY))
    with pytest.raises(OmniError) as caught:
        await world.answer("bad", PROMPT, temperature=9.0)
    assert (caught.value.code, caught.value.param) == (ErrorCode.INVALID_REQUEST, "temperature")
    assert len((await beside)[0]) == 16


async def test_a_cancelled_request_frees_the_worker_at_once(world):
    task = asyncio.create_task(world.answer("long", PROMPT, max_tokens=450, ignore_eos=True))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    stats = await stats_when(world.worker.address, holds_nothing, within_s=10)
    assert stats.cancelled_total == 1


async def test_a_client_who_reads_slowly_slows_nobody_and_what_waits_for_him_is_bounded(world):
    """While he reads nothing, another gets more tokens than his whole answer has: both are in each of vLLM's steps."""
    slow = SessionRequest("slow", {"prompt_token_ids": PROMPT}, {"max_tokens": 400, "ignore_eos": True})
    async with world.orchestrator.submit(slow) as session:
        first = await anext(session)
        assert isinstance(first, FinalChunk)
        quick, _ = await world.answer("quick", PROMPT, max_tokens=480, ignore_eos=True)
        assert len(quick) == 480
        items = [
            *first.items,
            *[item async for chunk in session if isinstance(chunk, FinalChunk) for item in chunk.items],
        ]
    assert sum(len(item["token_ids"]) for item in items) == 400
    # What fills his window came token by token, and all the rest as one.
    assert len(items) <= PARTS_AHEAD + 3


@pytest.mark.case("runtime:L6")
async def test_nothing_outlives_a_worker_that_is_killed(world):
    children = psutil.Process(world.worker.pid).children(recursive=True)
    assert any("EngineCore" in child.name() for child in children)
    os.kill(world.worker.pid, signal.SIGKILL)
    left = settled(lambda: [child.pid for child in children if is_running(child.pid)], lambda left: not left, 5)
    assert left == []

"""Real workers hand payloads over through shared memory, and say so when they cannot have it."""

import asyncio
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from omni_contract.api.v1alpha1 import ConnectorSpec
from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.codec import encode
from omni_contract.wire.exit_codes import ExitCode
from omni_contract.wire.stage_file import StageFile
from omni_runtime.connectors.inline import INLINE_LIMIT_BYTES
from tests.omni_runtime.worker.frontend import PATIENCE_S, start
from tests.omni_runtime.worker.stage_files import edge, stage_file
from tests.omni_runtime.worker.worker_process import WorkerProcess
from tests.support.worker_stats import holds_nothing, stats_when

pytestmark = pytest.mark.chaos

PROMPT = "x" * (INLINE_LIMIT_BYTES - encode({"prompt": ""}).size_bytes)
"""Just fits into a control message; what a stage makes of it does not."""


@pytest.fixture
def memory() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="omni-test-"))
    yield folder
    shutil.rmtree(folder)


def shm(size: str) -> ConnectorSpec:
    return ConnectorSpec.model_validate({"name": "shm", "shm": {"size": size}})


def arenas(memory: Path) -> int:
    return len(list(memory.iterdir()))


def producer(connector: str, size: str = "8Mi") -> StageFile:
    pair = edge("text", "denoiser", at="text", connector=connector)
    return stage_file("text", outputs=(pair,), connectors=(shm(size),))


def consumer(connector: str) -> StageFile:
    pair = edge("text", "denoiser", at="denoiser", connector=connector)
    return stage_file("denoiser", inputs=(pair,), connectors=(shm("8Mi"),))


@pytest.mark.parametrize("connector", ["shm", "auto"])
async def test_a_consumer_reads_its_input_where_the_producer_put_it(tmp_path: Path, memory: Path, connector: str):
    async with (
        WorkerProcess(producer(connector), tmp_path, shared_memory=memory) as first,
        WorkerProcess(consumer(connector), tmp_path, shared_memory=memory) as second,
        first.attached() as sender,
        second.attached() as reader,
    ):
        assert arenas(memory) == 1
        sender.send(start("r-1", payload={"prompt": PROMPT}, outputs=("text->denoiser",)))
        await sender.terminal("r-1")
        [output] = sender.of("r-1")[1].outputs
        assert output.handle.connector == connector and output.handle.locator
        reader.send(start("r-1", inputs=[wire.Input(edge="text->denoiser", handle=output.handle)], outputs=()))
        assert (await reader.terminal("r-1")).HasField("finished")
        await stats_when(first.address, holds_nothing, PATIENCE_S)


async def test_arenas_show_in_the_metrics(tmp_path: Path, memory: Path, free_port: int):
    file = producer("shm")
    async with (
        WorkerProcess(file, tmp_path, shared_memory=memory, metrics_port=free_port) as worker,
        worker.attached() as frontend,
    ):
        frontend.send(start("r-1", payload={"prompt": PROMPT}, outputs=("text->denoiser",)))
        await frontend.terminal("r-1")
        text = await asyncio.to_thread(scrape, free_port)
    assert 'omni_worker_arena_bytes{connector="shm",what="size"} 8.388608e+06' in text
    assert 'omni_worker_arena_blocks{connector="shm",what="used"} 1.0' in text
    assert 'omni_worker_arena_blocks{connector="shm",what="lingering"} 0.0' in text
    assert 'omni_worker_connector_events_total{connector="shm",what="puts"} 1.0' in text


async def test_a_stage_that_needs_more_shared_memory_than_there_is_says_so_and_ends(tmp_path: Path, memory: Path):
    file = producer("shm", size="900Ti")
    async with WorkerProcess(file, tmp_path, wait_ready=False, shared_memory=memory) as worker:
        assert await worker.exit_code() == ExitCode.MISCONFIGURED
        [error] = [line["message"] for line in worker.log_lines if line["level"] == "ERROR"]
        assert error.startswith(
            f'stage "text" cannot start: connector "shm": {memory} gives no 989,560,464,998,400 bytes'
        )
        assert error.endswith("give the folder more memory, lower shm.size, or set shm.directory")


async def test_a_stage_that_may_use_shared_memory_goes_without_and_says_so(tmp_path: Path, memory: Path):
    file = producer("auto", size="900Ti")
    async with (
        WorkerProcess(file, tmp_path, shared_memory=memory) as worker,
        worker.attached() as frontend,
    ):
        frontend.send(start("r-1", payload={"prompt": PROMPT}, outputs=("text->denoiser",)))
        await frontend.terminal("r-1")
        assert frontend.of("r-1")[1].outputs[0].handle.connector == "grpc"
        [warning] = [line["message"] for line in worker.log_lines if line["level"] == "WARNING"]
        assert warning.startswith(f"no shared memory for auto, which uses grpc instead: {memory} gives no")


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as reply:
        return str(reply.read().decode())

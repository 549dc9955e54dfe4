"""Every way in which a worker ends: its exit code, and one sentence as the last line of its log."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from socket import socket
from typing import Any

import pytest

from omni_contract.api.v1alpha1 import DiffusionEngine, EngineBlock, FakeEngine
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.exit_codes import MEANINGS, ExitCode
from omni_runtime.engines.protocol import ReportLoading
from omni_runtime.families.registry import FAMILIES
from omni_runtime.worker.errors import LoadError, StartupTimedOutError
from omni_runtime.worker.process import load
from omni_runtime.worker.states import State
from tests.omni_runtime.worker.engines import GatedEngine
from tests.omni_runtime.worker.frontend import PATIENCE_S, start
from tests.omni_runtime.worker.stage_files import stage_file
from tests.omni_runtime.worker.stages import MakeStage
from tests.omni_runtime.worker.worker_process import WorkerProcess


def test_every_code_has_a_meaning() -> None:
    assert MEANINGS.keys() == set(ExitCode)


@pytest.mark.parametrize(
    ("cause", "code", "sentence"),
    [
        (RuntimeError("no such folder"), ExitCode.LOAD_FAILED, "RuntimeError: no such folder"),
        (OmniError(ErrorCode.STAGE_FAILED, "no such folder"), ExitCode.LOAD_FAILED, "no such folder"),
        (RuntimeError("first\n\n  second"), ExitCode.LOAD_FAILED, "RuntimeError: first second"),
        (MemoryError("all gone"), ExitCode.OUT_OF_MEMORY, "MemoryError: all gone"),
        (OmniError(ErrorCode.OUT_OF_MEMORY, "too little"), ExitCode.OUT_OF_MEMORY, "too little"),
        (StartupTimedOutError("not done"), ExitCode.LOAD_TIMED_OUT, "StartupTimedOutError: not done"),
        (TimeoutError("a mount hangs"), ExitCode.LOAD_FAILED, "TimeoutError: a mount hangs"),
    ],
)
def test_what_loading_raised_decides_the_code(cause: Exception, code: ExitCode, sentence: str) -> None:
    error = LoadError("denoiser", cause)
    assert (error.exit_code, str(error)) == (code, f'stage "denoiser" cannot load: {sentence}')


class EndlessEngine(GatedEngine):
    """Loads for as long as its gate is closed."""

    async def load(self, report: ReportLoading) -> None:
        await self.gate.wait()


async def test_loading_that_takes_too_long_is_told_apart_from_any_other_timeout(make_stage: MakeStage) -> None:
    stage = make_stage(EndlessEngine(), file=stage_file(startup_timeout_s=0), state=State.LOADING)
    with pytest.raises(StartupTimedOutError, match="not done within 0 s"):
        await load(stage)
    assert stage.state is State.LOADING


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("engine", "code", "sentence"),
    [
        (
            FakeEngine(behavior="crash", crash_at=0),
            ExitCode.LOAD_FAILED,
            'stage "denoiser" cannot load: RuntimeError: the fake engine is told to crash while it loads',
        ),
        (
            DiffusionEngine(),
            ExitCode.MISCONFIGURED,
            f'stage "denoiser" cannot start: no family is named "no-such"; known are {", ".join(FAMILIES.names())}',
        ),
    ],
    ids=["cannot load", "cannot be made"],
)
async def test_a_stage_that_cannot_start_says_why(
    tmp_path: Path, engine: EngineBlock, code: ExitCode, sentence: str
) -> None:
    file = stage_file(family="no-such").model_copy(update={"engine": engine})
    async with WorkerProcess(file, tmp_path, wait_ready=False) as worker:
        assert await worker.exit_code() == code
        assert last_words(worker) == sentence
        assert "Traceback" not in worker.log


@pytest.mark.chaos
@pytest.mark.parametrize("text", [None, "", "{}", '{"stage": 1}'], ids=["absent", "empty", "no fields", "wrong"])
async def test_a_stage_file_that_cannot_be_used_is_named(tmp_path: Path, text: str | None):
    path = tmp_path / "broken.json"
    if text is not None:
        path.write_text(text)
    async with WorkerProcess(stage_file(), tmp_path, wait_ready=False, stage_file=path) as worker:
        assert await worker.exit_code() == ExitCode.MISCONFIGURED
        assert last_words(worker).startswith(f"stage file {path} cannot be used: ")


@pytest.mark.chaos
@pytest.mark.parametrize(
    "options",
    [
        lambda port: {"listen": f"127.0.0.1:{port}"},
        lambda port: {"metrics_port": port},
        lambda port: {"admin_port": port},
        lambda port: {"admin_port": 1, "admin_host": "203.0.113.1"},
    ],
    ids=["grpc", "metrics", "admin", "another host's"],
)
async def test_an_address_that_cannot_be_had_is_named(tmp_path: Path, options: Callable[[int], dict[str, Any]]):
    with socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        asked = options(other.getsockname()[1])
        async with WorkerProcess(stage_file(), tmp_path, wait_ready=False, **asked) as worker:
            assert await worker.exit_code() == ExitCode.LISTEN_FAILED
            assert str(next(iter(asked.values()))) in last_words(worker)


@pytest.mark.chaos
async def test_an_engine_that_dies_ends_the_process_and_the_streams_at_once(tmp_path: Path):
    dying = stage_file(engine=FakeEngine(behavior="crash", crash_at=1))
    async with WorkerProcess(dying, tmp_path) as worker, worker.attached() as frontend:
        frontend.send(start("r-1"))
        assert (await frontend.terminal("r-1")).failed.code == "stage_failed"
        assert await worker.exit_code() == ExitCode.ENGINE_DIED
        assert last_words(worker) == 'the engine of stage "denoiser" died: the fake engine is told to crash at step 1'


@pytest.mark.chaos
@pytest.mark.parametrize("module", ["omni_runtime.worker", "omni_runtime.frontend"])
async def test_a_wrong_command_line_is_misconfigured(module: str):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, "--no-such-option", stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE_S):
        _, said = await process.communicate()
    assert process.returncode == ExitCode.MISCONFIGURED
    assert b"--no-such-option" in said


def last_words(worker: WorkerProcess) -> str:
    return worker.log_lines[-1]["message"]

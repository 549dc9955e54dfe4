"""`omni control`: what it takes, and what it prints about real workers."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest

from omni_contract.api.v1alpha1 import FakeEngine
from omni_runtime.administration.calls import CALLS
from omni_runtime.administration.command import DONE, MISNAMED, REFUSED, ask_all, command
from omni_runtime.administration.targets import Target
from tests.omni_runtime.worker.frontend import start
from tests.omni_runtime.worker.stage_files import stage_file
from tests.omni_runtime.worker.worker_process import WorkerProcess


def parsed(*arguments: str) -> Namespace:
    parser = ArgumentParser(prog="omni control")
    command.configure(parser)
    return parser.parse_args(arguments)


async def asked(*arguments: str, of: list[Target]) -> int:
    options = parsed(*arguments, "somewhere:1")
    return await ask_all(CALLS[options.call], of, options)


@pytest.mark.parametrize("call", [call for call in CALLS if call != "stats"])
def test_a_call_that_changes_something_needs_a_name(call: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(call)
    assert "STAGE" in capsys.readouterr().err


def test_a_wrong_name_is_told_and_nothing_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert command.run(parsed("sleep", "denoiser")) == MISNAMED
    assert 'omni control: no stage "denoiser" is served on this machine; there is none' in capsys.readouterr().err


@pytest.mark.chaos
async def test_each_call_tells_what_came_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = stage_file(engine=FakeEngine(steps=3))
    async with WorkerProcess(file, tmp_path, profile_dir=tmp_path) as worker, worker.attached() as frontend:
        here = [Target("denoiser-0", worker.address)]
        assert await asked("start-profile", "--steps", "2", of=here) == DONE
        frontend.send(start("r-1"))
        await frontend.terminal("r-1")
        for call in ("stop-profile", "reset-cache", "sleep", "stats", "wake", "drain"):
            assert await asked(call, of=here) == DONE
    [started, stopped, *others] = capsys.readouterr().out.splitlines()
    trace = started.removeprefix("denoiser-0: recording 2 steps for ")
    assert stopped == f"denoiser-0: recorded 2 steps in {trace}"
    assert others == [
        "denoiser-0: 1 entries dropped",
        "denoiser-0: asleep at level 1, 0 GiB given back",
        "denoiser-0: asleep, requests_total 1, sleep_level 1",
        "denoiser-0: awake",
        "denoiser-0: draining, 0 requests left",
    ]


@pytest.mark.chaos
async def test_a_refusal_of_one_is_told_beside_the_answers_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with WorkerProcess(stage_file(), tmp_path) as worker:
        both = [Target("gone-0", f"unix:{tmp_path}/gone.sock"), Target("denoiser-0", worker.address)]
        assert await asked("sleep", of=both) == REFUSED
        assert await asked("start-profile", of=both[1:]) == REFUSED
    said = capsys.readouterr()
    assert said.out == "denoiser-0: asleep at level 1, 0 GiB given back\n"
    gone, refused = said.err.splitlines()
    assert gone.startswith("gone-0: ")
    assert refused == 'denoiser-0: stage "denoiser" is asleep; start profile needs one that is ready'

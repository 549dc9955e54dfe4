from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.errors import MissingProgram, ProcessDied
from tests.cluster.processes import Background, Identity

SLEEP = ["sleep", "600"]


@pytest.fixture
def background(tmp_path: Path) -> Iterator[Background]:
    process = Background(tmp_path, "sleeper")
    yield process
    process.kill()


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEP) as process:
        yield process
        process.kill()


def test_start_runs_a_program_once_and_stop_ends_it(background: Background) -> None:
    background.start(SLEEP)
    first = background.identity
    background.start(SLEEP)

    assert first is not None
    assert background.identity == first
    background.stop()
    assert not first.is_running()
    assert not background.pid_file.exists()


def test_stop_leaves_a_process_alone_that_only_has_the_same_number(
    background: Background, stranger: subprocess.Popen[bytes]
) -> None:
    known = Identity.of(stranger.pid, "sleep")
    background.pid_file.write_text(json.dumps({**vars(known), "started_ticks": known.started_ticks - 1}))

    background.stop()

    assert stranger.poll() is None


def test_stop_leaves_another_program_alone(background: Background, stranger: subprocess.Popen[bytes]) -> None:
    known = Identity.of(stranger.pid, "sleep")
    background.pid_file.write_text(json.dumps({**vars(known), "program": "etcd"}))

    background.stop()

    assert stranger.poll() is None


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", '{"pid": 1}'])
def test_a_half_written_pid_file_counts_as_nothing_running(background: Background, content: str) -> None:
    background.pid_file.write_text(content)

    assert not background.is_running


def test_a_killed_process_counts_as_not_running_although_nobody_waited_for_it(background: Background) -> None:
    background.start(SLEEP)
    background.kill()

    assert not background.is_running


def test_the_error_of_a_process_that_ends_early_shows_its_last_lines(background: Background) -> None:
    background.start([sys.executable, "-c", "print('no such flag'); raise SystemExit(1)"])

    with pytest.raises(ProcessDied, match="no such flag"):
        background.wait_until(lambda: False, timeout_s=10)


def test_a_missing_program_is_named(background: Background) -> None:
    with pytest.raises(MissingProgram, match="no-such-program"):
        background.start(["no-such-program"])

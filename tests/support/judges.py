"""Asks judges: scripts that make with plain libraries, and nothing of ours, what ours is compared with."""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.layout.source import CHECKOUT

COURT = CHECKOUT / "tests" / "models" / "court.py"


def ask(
    script: Path,
    arguments: Sequence[object],
    given: str,
    python: Path = Path(sys.executable),
    forks: bool = True,
    timeout_s: float = 300,
) -> str:
    """What the script says, in a process of its own. Without `forks`, one that all such questions share: it says
    nothing, and has libraries or a device that cannot be forked."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "given").write_text(given)
        question = {"script": str(script), "arguments": [str(one) for one in arguments], "folder": name}
        code = _answer(_court(python, forks), json.dumps(question), timeout_s)
        assert code is not None, f"{script.name} did not answer in {timeout_s:g} s"
        assert code == "0", f"{script.name}: {code or 'its court has ended'}: {_text(folder / 'complained')[-4000:]}"
        return _text(folder / "said")


def _answer(court: "subprocess.Popen[str]", question: str, timeout_s: float) -> str | None:
    """An exit code; none if there is no answer in time, and an empty one if the court ends of the question."""
    assert court.stdin is not None and court.stdout is not None
    court.stdin.write(question + "\n")
    court.stdin.flush()
    if not select.select([court.stdout], [], [], timeout_s)[0]:
        # Else a late answer would be taken for that to the next question.
        _end(court)
        return None
    if code := court.stdout.readline().strip():
        return code
    _end(court)
    return ""


_courts: dict[tuple[Path, bool], "subprocess.Popen[str]"] = {}


def _court(python: Path, forks: bool) -> "subprocess.Popen[str]":
    """Until this process ends; a new one if the last one has ended of a question."""
    court = _courts.get((python, forks))
    if court is None or court.poll() is not None:
        # A library's pool of threads could not be forked.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        command = [python, COURT, *(["--forks"] if forks else [])]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        court = subprocess.Popen(command, env=environment, text=True, start_new_session=True, **pipes)
        atexit.register(_end, court)
        _courts[python, forks] = court
    return court


def _end(court: "subprocess.Popen[str]") -> None:
    """With the judge that it waits for."""
    if court.poll() is None:
        os.killpg(court.pid, signal.SIGKILL)
    court.communicate()


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""

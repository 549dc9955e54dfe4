"""Asks judges: scripts that make with plain libraries, and nothing of ours, what ours is compared with."""

import atexit
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.layout.source import CHECKOUT

COURT = CHECKOUT / "tests" / "models" / "court.py"
TIMEOUT_S = 300


def ask(
    script: Path, arguments: Sequence[object], given: str, python: Path = Path(sys.executable), forks: bool = True
) -> str:
    """What the script says, in a process of its own. Without `forks`, one that all such questions share: it says
    nothing, and has libraries or a device that cannot be forked."""
    court = _court(python, forks)
    assert court.stdin is not None and court.stdout is not None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "given").write_text(given)
        question = {"script": str(script), "arguments": [str(one) for one in arguments], "folder": name}
        court.stdin.write(json.dumps(question) + "\n")
        court.stdin.flush()
        assert select.select([court.stdout], [], [], TIMEOUT_S)[0], f"{script.name} did not answer in {TIMEOUT_S} s"
        code = court.stdout.readline().strip()
        assert code == "0", f"{script.name}: {code or 'its court has ended'}: {_text(folder / 'complained')[-4000:]}"
        return _text(folder / "said")


@cache
def _court(python: Path, forks: bool) -> "subprocess.Popen[str]":
    """Until this process ends."""
    # A library's pool of threads could not be forked.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [python, COURT, *(["--forks"] if forks else [])]
    court = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
    atexit.register(_end, court)
    return court


def _end(court: "subprocess.Popen[str]") -> None:
    court.kill()
    court.communicate()


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""

"""The judge of Qwen3-TTS: the qwen-tts package from its wheel, in an environment of its own, apart from ours.

Made once, in `$OMNI_CACHE/peers`, of what `qwen_tts_requirements.txt` pins; delete the folder to make it anew. The
package's demo needs gradio, which is left out. To change a version, resolve the package with `uv lock` and export it.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy

from tests.layout.source import CHECKOUT
from tests.support.judges import ask

REQUIREMENTS = Path(__file__).with_name("qwen_tts_requirements.txt")
SCRIPT = CHECKOUT / "tests" / "models" / "qwen_tts_reference.py"
FREE_BYTES = 8 * 10**9


class JudgeMissingError(Exception):
    """The judge's environment cannot be made; the message says why."""


@dataclass(frozen=True)
class Judged:
    """What the package made of a request: codes of shape (groups, frames), and samples."""

    codes: Any
    sound: Any


def judged(folder: Path, requests: Sequence[dict[str, Any]]) -> list[Judged]:
    """Each alone, by the package."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "judged.npz"
        ask(SCRIPT, [folder, out], json.dumps(list(requests)), judge_python(), forks=False)
        with numpy.load(out) as made:
            return [Judged(made[f"{place}.codes"], made[f"{place}.sound"]) for place in range(len(requests))]


@cache
def judge_python() -> Path:
    """The interpreter of the judge's environment, which is made if it is not there yet."""
    name = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    peers = cache_folder() / "peers"
    folder = peers / f"qwen-tts-{name}"
    peers.mkdir(parents=True, exist_ok=True)
    with _alone(peers / f"{folder.name}.lock"):
        if not (folder / ".complete").exists():
            _make(folder)
    return folder / "bin" / "python"


def cache_folder() -> Path:
    return Path(os.environ.get("OMNI_CACHE") or Path.home() / ".cache" / "omni-operator")


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Tests of several levels may ask for the environment at once."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _make(folder: Path) -> None:
    if (free_bytes := shutil.disk_usage(folder.parent).free) < FREE_BYTES:
        raise JudgeMissingError(f"{folder.parent} has {free_bytes:,} bytes free, the judge needs {FREE_BYTES:,}")
    _uv("venv", "-q", "--clear", "--python", os.path.realpath(sys.executable), str(folder))
    python = str(folder / "bin" / "python")
    _uv("pip", "sync", "-q", "--python", python, "--require-hashes", str(REQUIREMENTS))
    (folder / ".complete").touch()


def _uv(*arguments: str) -> None:
    program = shutil.which("uv") or str(cache_folder() / "tools" / "bin" / "uv")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise JudgeMissingError(f"uv {arguments[0]} {arguments[1]} failed: {done.stderr[-2000:]}")

"""Processes whose wall clock a test moves while they run, by Debian's libfaketime."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.process_census import is_running

MEMORY = Path("/dev/shm")
PACKAGE = "libfaketime"
LIBRARY = "faketime/libfaketimeMT.so.1"


@dataclass(frozen=True)
class Clock:
    """A process that is started with `environment` reads its wall clock's offset from a file, at each look."""

    file: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """The clock that only goes forward is left alone, as the kernel leaves it alone."""
        return {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self, seconds: int) -> None:
        unfinished = self.file.with_suffix(".new")
        unfinished.write_text(f"{seconds:+d}\n")
        unfinished.replace(self.file)


def faked_clock(file: Path) -> Clock:
    """Right until it jumps."""
    clock = Clock(file)
    clock.jump(0)
    return clock


def sweep() -> None:
    """Removes what the library leaves in /dev/shm for each process that was killed."""
    for path in (*MEMORY.glob("faketime_shm_*"), *MEMORY.glob("sem.faketime_sem_*")):
        if not is_running(int(path.name.rpartition("_")[2])):
            path.unlink(missing_ok=True)


@cache
def _library() -> Path:
    """Installed if it is not there: tests of this kind run as root, as continuous integration does."""
    found = _installed()
    if found is None:
        quietly = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-q"], ["install", "-yq", "--no-install-recommends", PACKAGE]):
            subprocess.run(["apt-get", *words], env=quietly, check=True, capture_output=True)
        found = _installed()
    assert found is not None, f"the package {PACKAGE} has no {LIBRARY}"
    return found


def _installed() -> Path | None:
    return next(Path("/usr/lib").glob(f"*/{LIBRARY}"), None)

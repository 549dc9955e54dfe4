"""The programs that build images. On Debian, root gets missing ones installed; uv may also be the Makefile's own."""

import os
import shutil
from pathlib import Path

from images.commands import run
from images.errors import ProgramMissing
from images.steps import step

PACKAGES = ("buildah", "mmdebstrap")


def ensure() -> None:
    missing = [name for name in PACKAGES if shutil.which(name) is None]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ProgramMissing(missing[0])
    with step(f"apt-get install {' '.join(missing)}"):
        quietly = {"DEBIAN_FRONTEND": "noninteractive"}
        run(["apt-get", "update", "-q"], env=quietly)
        run(["apt-get", "install", "-yq", "--no-install-recommends", *missing], env=quietly)


def uv(cache: Path) -> Path:
    """From PATH, else the one that `make install` has put beside the images' cache."""
    found = shutil.which("uv")
    return Path(found) if found else cache.parent / "tools" / "bin" / "uv"

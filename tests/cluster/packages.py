"""Debian packages that the own dockerd, the node image and builds with a C compiler need, and what packages of Python
need of the system; what is missing is installed."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cluster.commands import run, run_logged
from tests.cluster.errors import ClusterError, NotRoot
from tests.cluster.settings import Settings
from tests.cluster.steps import Steps

PACKAGES = (
    "docker.io",
    "mmdebstrap",
    "jq",
    "iproute2",
    "util-linux",
    "tini",
    "openssl",
    "zstd",
)
FOR_C = ("libseccomp-dev", "pkg-config", "gcc", "libc6-dev")
"""For programs of Go that are built with a C compiler."""
RELEASE_FILE = Path("/etc/os-release")
RELEASE = "bookworm"  # its systemd 252 is the last that runs in a container on cgroup v1


class WrongSystem(ClusterError):
    def __init__(self, found: str) -> None:
        super().__init__(
            f"this machine has neither Docker with a registry nor Debian {RELEASE} (it says: {found!r}); "
            "the node image can be made on Debian 12 only, so start Docker and let it reach its registry"
        )


def require_root(what: str) -> None:
    if os.geteuid() != 0:
        raise NotRoot(what)


def require_debian(release_file: Path = RELEASE_FILE) -> None:
    if not _is_debian(release_file):
        names = (line for line in _lines(release_file) if line.startswith("PRETTY_NAME="))
        raise WrongSystem(next(names, "no os-release"))


def ensure_if_possible(settings: Settings, steps: Steps, wanted: tuple[str, ...]) -> None:
    """As root on Debian 12; elsewhere it says what may be missing, and who needs it fails by itself."""
    is_debian = _is_debian(RELEASE_FILE)
    if is_debian and os.geteuid() == 0:
        ensure_packages(settings, steps, wanted)
    elif absent := missing(wanted, _installed() if is_debian else set()):
        print(f"not installed, as that takes root on Debian {RELEASE}, whose names these are: {', '.join(absent)}")


def ensure_packages(settings: Settings, steps: Steps, wanted: tuple[str, ...] = PACKAGES) -> None:
    absent = missing(wanted, _installed())
    if not absent:
        return
    with steps.step(f"apt-get install {' '.join(absent)}"):
        log = settings.logs / "apt.log"
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run_logged(["apt-get", "update", "-q"], log, env=env)
        run_logged(["apt-get", "install", "-yq", "--no-install-recommends", *absent], log, env=env)


def missing(wanted: tuple[str, ...], installed: set[str]) -> list[str]:
    return [package for package in wanted if package not in installed]


def _is_debian(release_file: Path) -> bool:
    return f"VERSION_CODENAME={RELEASE}" in _lines(release_file)


def _lines(release_file: Path) -> list[str]:
    return release_file.read_text().splitlines() if release_file.exists() else []


def _installed() -> set[str]:
    lines = run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n"]).splitlines()
    return {line.split()[0] for line in lines if line.endswith(" installed")}

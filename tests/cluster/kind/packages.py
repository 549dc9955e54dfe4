"""Debian packages that tests, the own dockerd and the node image need; what is missing is installed."""

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
    "libseccomp-dev",
    "pkg-config",
    "gcc",
    "libc6-dev",
    "iproute2",
    "util-linux",
    "tini",
    "openssl",
    "zstd",
)
OF_TESTS = (*PACKAGES, "libibverbs1", "libnuma1")
"""Mooncake's libraries need the last two."""
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


def ensure_packages_of_tests(settings: Settings, steps: Steps) -> None:
    """As root on Debian 12; elsewhere each test that lacks something says what."""
    try:
        require_root("apt-get")
        require_debian()
    except ClusterError:
        return
    ensure_packages(settings, steps, OF_TESTS)


def require_debian(release_file: Path = Path("/etc/os-release")) -> None:
    lines = release_file.read_text().splitlines() if release_file.exists() else []
    if f"VERSION_CODENAME={RELEASE}" not in lines:
        raise WrongSystem(next((line for line in lines if line.startswith("PRETTY_NAME=")), "no os-release"))


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


def _installed() -> set[str]:
    lines = run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n"]).splitlines()
    return {line.split()[0] for line in lines if line.endswith(" installed")}

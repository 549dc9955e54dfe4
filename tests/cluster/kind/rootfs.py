"""A small Debian tree, made by mmdebstrap from the machine's own package sources and kept in the cache."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tests.cluster.commands import run_logged
from tests.cluster.errors import ClusterError
from tests.cluster.packages import RELEASE
from tests.cluster.settings import Settings
from tests.cluster.steps import Steps

SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))


# the list of kind's own base image, less what mounts network file systems; kube-proxy and the pod network need no more
PACKAGES = (
    *("systemd", "conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod"),
    *("libseccomp2", "pigz", "e2fsprogs", "bash", "ca-certificates", "curl", "jq", "procps"),
)


def ensure_tree(settings: Settings, steps: Steps) -> Path:
    path = settings.cache / "trees" / f"{RELEASE}-{tree_key()}.tar"
    if not path.exists():
        with steps.step(f"mmdebstrap: a tree of Debian {RELEASE}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f".unfinished-{path.name}")
            run_logged(_command(unfinished, _source()), settings.logs / "mmdebstrap.log", env=os.environ)
            unfinished.rename(path)
    return path


def tree_key() -> str:
    return hashlib.sha256(f"{RELEASE} {PACKAGES!r}".encode()).hexdigest()[:16]


def _command(target: Path, source: Path) -> list[str | Path]:
    without = [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("man", "doc", "locale")]
    options = ["--mode=root", '--aptopt=APT::Install-Recommends "false"', *without]
    return [
        *("mmdebstrap", *options, "--variant=minbase", f"--include={','.join(PACKAGES)}"),
        *(RELEASE, target, source),
    ]


def _source() -> Path:
    for source in SOURCES:
        if source.exists():
            return source
    raise ClusterError(f"no Debian package source: none of {', '.join(map(str, SOURCES))} exists")

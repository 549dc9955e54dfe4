"""Two small Debian trees, made by mmdebstrap from the machine's own package sources and kept in the cache."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.commands import run_logged
from tests.cluster.errors import ClusterError
from tests.cluster.kind.packages import RELEASE
from tests.cluster.settings import Settings
from tests.cluster.steps import Steps

SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))


@dataclass(frozen=True)
class Tree:
    name: str
    variant: str
    packages: tuple[str, ...]

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{RELEASE} {self!r}".encode()).hexdigest()[:16]


# the list of kind's own base image, less what mounts network file systems
NODE_TREE = Tree(
    "node",
    "minbase",
    (
        *("systemd", "conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod"),
        *("libseccomp2", "pigz", "e2fsprogs", "bash", "ca-certificates", "curl", "jq", "procps"),
    ),
)
NETWORK_TREE = Tree(
    "network", "essential", ("iptables", "nftables", "iproute2", "curl", "jq", "ca-certificates", "kmod")
)


def ensure_tree(settings: Settings, tree: Tree, steps: Steps) -> Path:
    path = settings.cache / "trees" / f"{tree.name}-{tree.key}.tar"
    if not path.exists():
        with steps.step(f"mmdebstrap: Debian {RELEASE} tree {tree.name!r}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f".unfinished-{path.name}")
            log = settings.logs / f"mmdebstrap-{tree.name}.log"
            run_logged(mmdebstrap_command(tree, unfinished, _source()), log, env=os.environ)
            unfinished.rename(path)
    return path


def mmdebstrap_command(tree: Tree, target: Path, source: Path) -> list[str | Path]:
    without = [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("man", "doc", "locale")]
    options = ["--mode=root", '--aptopt=APT::Install-Recommends "false"', *without]
    return [
        *("mmdebstrap", *options, f"--variant={tree.variant}", f"--include={','.join(tree.packages)}"),
        *(RELEASE, target, source),
    ]


def _source() -> Path:
    for source in SOURCES:
        if source.exists():
            return source
    raise ClusterError(f"no Debian package source: none of {', '.join(map(str, SOURCES))} exists")

"""Which Go programs the test clusters are made of, and how each group is built; versions live in programs/*/go.mod."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "programs"
KUBERNETES = "k8s.io/kubernetes"
KUBERNETES_VERSION_VARIABLES = "k8s.io/component-base/version"


@dataclass(frozen=True)
class KeptFiles:
    """Files of a Go module that the running programs need; kept beside them, so that no module cache is needed."""

    module: str
    folders: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """A group of programs that are built, named and cached together; `source` is its folder below programs/."""

    name: str
    source: str
    packages: tuple[str, ...]
    output: str = ""
    tags: str = ""
    cgo: bool = False
    version_of: str = ""
    kept: KeptFiles | None = None

    @property
    def folder(self) -> Path:
        return SOURCES / self.source

    @property
    def programs(self) -> tuple[str, ...]:
        return (self.output,) if self.output else tuple(package.rsplit("/", 1)[-1] for package in self.packages)


def _kubernetes(*commands: str) -> tuple[str, ...]:
    return tuple(f"{KUBERNETES}/cmd/{command}" for command in commands)


def _containerd(*commands: str) -> tuple[str, ...]:
    return tuple(f"github.com/containerd/containerd/v2/cmd/{command}" for command in commands)


def _cni(*plugins: str) -> tuple[str, ...]:
    return tuple(f"github.com/containernetworking/plugins/plugins/{plugin}" for plugin in plugins)


KUBECTL = Recipe("kubectl", "kubernetes", _kubernetes("kubectl"), version_of=KUBERNETES)
HELM = Recipe("helm", "helm", ("helm.sh/helm/v4/cmd/helm",))
KIND = Recipe(
    "kind",
    "kind",
    ("sigs.k8s.io/kind",),
    kept=KeptFiles("sigs.k8s.io/kind", ("images/base/files", "pkg/apis/config/defaults")),
)
SERVERS = (
    KUBECTL,
    Recipe("etcd", "etcd", ("go.etcd.io/etcd/server/v3",), output="etcd"),
    Recipe(
        "kubernetes-control",
        "kubernetes",
        _kubernetes("kube-apiserver", "kube-controller-manager", "kube-scheduler"),
        version_of=KUBERNETES,
    ),
)
"""What makes a control plane."""
CONTROL = (
    *SERVERS,
    Recipe(
        "kwok",
        "kwok",
        ("sigs.k8s.io/kwok/cmd/kwok",),
        kept=KeptFiles("sigs.k8s.io/kwok", ("kustomize/stage",)),
    ),
)
"""A control plane with nodes that only seem to be there."""
NODE = (
    Recipe(
        "kubernetes-node",
        "kubernetes",
        _kubernetes("kubeadm", "kubelet", "kube-proxy"),
        version_of=KUBERNETES,
    ),
    KIND,
    Recipe(
        "containerd",
        "containerd",
        _containerd("containerd", "ctr", "containerd-shim-runc-v2"),
        tags="no_btrfs no_devmapper no_zfs no_aufs",
    ),
    Recipe("runc", "runc", ("github.com/opencontainers/runc",), tags="seccomp", cgo=True),
    Recipe("crictl", "crictl", ("sigs.k8s.io/cri-tools/cmd/crictl",)),
    Recipe("cni", "cni", _cni("ipam/host-local", "main/loopback", "main/ptp", "meta/portmap")),
    Recipe("coredns", "coredns", (".",), output="coredns"),
    Recipe("pause", "pause", (".",), output="pause"),
)
"""What a node of kind adds to a control plane."""
RECIPES = {recipe.name: recipe for recipe in (*CONTROL, HELM, *NODE)}

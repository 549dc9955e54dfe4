"""The kind node image without a registry: a Debian tree, kind's base files, our programs, and a filled image store.

Built once, then kept in the cache as one compressed file that a later start only loads.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.commands import run
from tests.cluster.errors import CommandFailed
from tests.cluster.kind.component_images import TREE_IMAGE, ComponentImages
from tests.cluster.kind.rootfs import ensure_tree, tree_key
from tests.cluster.kind.sandbox import FILES, Sandbox
from tests.cluster.programs import Programs, exclusive, key, version
from tests.cluster.recipes import NODE, RECIPES, SERVERS
from tests.cluster.settings import Settings
from tests.cluster.steps import Steps

BASE = "omni-test/base"
FILLED = "omni-test-filled"
NODE_PROGRAMS = {
    "usr/bin": ("kubeadm", "kubectl", "kubelet"),
    "usr/local/bin": ("containerd", "containerd-shim-runc-v2", "ctr", "crictl"),
    "usr/local/sbin": ("runc",),
    "opt/cni/bin": RECIPES["cni"].programs,
}
DOCKERFILE = f"""\
FROM {TREE_IMAGE}
ENV container=docker
STOPSIGNAL SIGRTMIN+3
COPY root/ /
RUN /kind/node-setup.sh && rm /kind/node-setup.sh
"""
START_CONTAINERD = """\
(containerd >/dev/null 2>&1 &)
for _ in $(seq 50); do ctr info >/dev/null 2>&1 && exit; sleep .2; done
exit 1
"""
# an ended containerd stays visible as a zombie, since the container's first process waits for nobody
END_CONTAINERD = "pkill -x containerd; while pgrep -x -r D,R,S containerd; do sleep .1; done"
IMPORT = "ctr -n k8s.io images import --label=io.cri-containerd.pinned=pinned --all-platforms --no-unpack --digests"


@dataclass(frozen=True)
class NodeImage:
    settings: Settings
    programs: Programs
    sandbox: Sandbox
    steps: Steps

    @property
    def name(self) -> str:
        return f"omni-test/node:{image_key()}"

    @property
    def archive(self) -> Path:
        return self.settings.cache / "node-images" / f"node-{image_key()}.tar.zst"

    def ensure(self) -> str:
        """Make the image known to the sandbox's dockerd and return its name."""
        with exclusive(self.archive.parent / ".lock"):
            if not self._is_loaded():
                self._load_or_build()
        return self.name

    def _load_or_build(self) -> None:
        if self.archive.exists():
            with self.steps.step("node image: load from the cache"):
                _shell('zstd -qdc "$1" | docker load -q', self.archive, sandbox=self.sandbox)
        else:
            self._build()

    def _build(self) -> None:
        tree = ensure_tree(self.settings, self.steps)
        work = self.settings.cache / "work" / "node-image"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        components = ComponentImages(self.programs, self.sandbox, work)
        with self.steps.step("node image: component images"):
            self.sandbox.docker("import", tree, TREE_IMAGE)
            images = components.build()
        with self.steps.step("node image: base"):
            self._build_base(work / "base")
        with self.steps.step("node image: fill its image store"):
            self._fill(images)
        with self.steps.step("node image: save to the cache"):
            self._save()
            components.remove()
            shutil.rmtree(work)

    def _is_loaded(self) -> bool:
        try:
            self.sandbox.docker("image", "inspect", self.name)
        except CommandFailed:
            return False
        return True

    def _build_base(self, context: Path) -> None:
        root = context / "root"
        shutil.copytree(self.programs.kept("kind") / "images" / "base" / "files", root)
        for folder, names in NODE_PROGRAMS.items():
            (root / folder).mkdir(parents=True, exist_ok=True)
            for name in names:
                shutil.copy(self.programs[name], root / folder)
        (root / "kind" / "manifests").mkdir(parents=True)
        shutil.copy(FILES / "podnet.yaml", root / "kind" / "manifests" / "default-cni.yaml")
        shutil.copy(FILES / "node-setup.sh", root / "kind")
        (root / "kind" / "version").write_text(kubernetes_version() + "\n")
        (context / "Dockerfile").write_text(DOCKERFILE)
        self.sandbox.docker("build", "-q", "-t", BASE, context)

    def _fill(self, images: Path) -> None:
        """containerd runs in a container of the base and imports the images; then that container is the node image."""
        docker = self.sandbox.docker
        docker("rm", "-f", "-v", FILLED)  # what a killed run has left
        docker("run", "-d", "--name", FILLED, "--privileged", "--entrypoint", "sleep", BASE, "infinity")
        docker("exec", FILLED, "bash", "-c", START_CONTAINERD)
        _shell(f'docker exec -i "$1" {IMPORT} - <"$2"', FILLED, images, sandbox=self.sandbox)
        docker("exec", FILLED, "bash", "-c", END_CONTAINERD)
        docker("commit", "-c", 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]', FILLED, self.name)
        docker("rm", "-f", "-v", FILLED)

    def _save(self) -> None:
        self.archive.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.archive.with_name(f".unfinished-{self.archive.name}")
        _shell('docker save "$1" | zstd -q -f -T0 -3 -o "$2"', self.name, unfinished, sandbox=self.sandbox)
        unfinished.rename(self.archive)


def kubernetes_version() -> str:
    return version(RECIPES["kubernetes-node"])


def image_key() -> str:
    """A hash of all that goes into the image: programs, trees, our files and this recipe."""
    digest = hashlib.sha256(DOCKERFILE.encode())
    for recipe in (*SERVERS, *NODE):
        digest.update(key(recipe).encode())
    digest.update(tree_key().encode())
    for name in ("node-setup.sh", "podnet.sh", "podnet.yaml"):
        digest.update((FILES / name).read_bytes())
    return digest.hexdigest()[:16]


def _shell(script: str, *arguments: str | Path, sandbox: Sandbox) -> None:
    words: Sequence[str | Path] = ["bash", "-c", f"set -o pipefail; {script}", "bash", *arguments]
    run(words, env=sandbox.environment)

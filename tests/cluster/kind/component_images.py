"""The images that kubeadm asks for, under exactly the names it asks for, each made of one program built here."""

from __future__ import annotations

import re
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.commands import run
from tests.cluster.kind.sandbox import FILES, Sandbox
from tests.cluster.programs import Programs, version
from tests.cluster.recipes import RECIPES

TREE_IMAGE = "omni-test/tree"
PODNET_IMAGE = "localhost/omni-test/podnet:v1"  # podnet.yaml names it
PATH_VARIABLE = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class ComponentImages:
    programs: Programs
    sandbox: Sandbox
    work: Path

    def build(self) -> Path:
        """Make every image and return the archive that holds them all."""
        for image, program in self._images().items():
            if program == "kube-proxy":
                self._on_tree(image, self.programs[program])
            else:
                self._alone(image, program)
        self._on_tree(PODNET_IMAGE, FILES / "podnet.sh")
        archive = self.work / "components.tar"
        self.sandbox.docker("save", "-o", archive, *self._images(), PODNET_IMAGE)
        return archive

    def remove(self) -> None:
        """Give the space back; the node image has its own copies."""
        self.sandbox.docker("image", "rm", "-f", *self._images(), PODNET_IMAGE)

    def _images(self) -> dict[str, str]:
        """Image name → program, for what kubeadm lists and for the pause image that containerd is configured with."""
        release = version(RECIPES["kubernetes-node"])
        listed = run([self.programs["kubeadm"], "config", "images", "list", "--kubernetes-version", release]).split()
        config = self.programs.kept("kind") / "images" / "base" / "files" / "etc" / "containerd" / "config.toml"
        return {image: program_of(image) for image in [*listed, pause_image(config.read_text())]}

    def _alone(self, image: str, program: str) -> None:
        """An image that holds one static program and an empty /tmp."""
        tree = self.work / f"{program}.tar"
        with tarfile.open(tree, "w") as tar:
            tar.add(self.programs[program], f"usr/local/bin/{program}")
            folder = tarfile.TarInfo("tmp")
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(folder)
        start = f'ENTRYPOINT ["/usr/local/bin/{program}"]'
        self.sandbox.docker("import", "-c", start, "-c", PATH_VARIABLE, tree, image)
        tree.unlink()

    def _on_tree(self, image: str, program: Path) -> None:
        context = self.work / program.name
        context.mkdir()
        shutil.copy(program, context)
        (context / "Dockerfile").write_text(f"FROM {TREE_IMAGE}\nCOPY {program.name} /usr/local/bin/\n")
        self.sandbox.docker("build", "-q", "-t", image, context)


def program_of(image: str) -> str:
    """`host/coredns/coredns:v1.14.6` → `coredns`."""
    return image.rsplit("/", 1)[-1].split(":")[0]


def pause_image(containerd_config: str) -> str:
    found = re.search(r'^\s*sandbox_image = "(.+)"$', containerd_config, re.MULTILINE)
    if found is None:
        raise ValueError("kind's containerd config names no sandbox_image")
    return found[1]

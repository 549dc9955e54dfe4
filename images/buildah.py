"""Buildah, with a store of its own in the cache: nothing is pulled, nothing of ours is left in the machine's store."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from images.commands import run

# chroot isolation needs no capability that a container lacks
ENVIRONMENT = {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "overlay"}


@dataclass(frozen=True)
class Buildah:
    store: Path

    def has(self, reference: str) -> bool:
        return reference in self._run("images", "--format", "{{.Name}}:{{.Tag}}").splitlines()

    def build(self, reference: str, containerfile: Path, contexts: Mapping[str, Path], base: str = "") -> None:
        """Build from the Containerfile; the context "" is its plain one, the others are named."""
        named = [f"--build-context={name}={path}" for name, path in contexts.items() if name]
        arguments = [f"--build-arg=BASE={base}"] if base else []
        context = contexts.get("", containerfile.parent)
        self._run(
            "build", "--layers", "--pull=never", *arguments, *named, "-q", "-t", reference, "-f", containerfile, context
        )

    def save(self, reference: str, archive: Path) -> None:
        partial = archive.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        self._run("push", "-q", "--disable-compression", reference, f"oci-archive:{partial}:{reference}")
        partial.rename(archive)

    def _run(self, *words: str | Path) -> str:
        places: list[str | Path] = ["--root", self.store / "root", "--runroot", self.store / "run"]
        return run(["buildah", *places, *words], env=ENVIRONMENT)

"""Buildah, with a store of its own in the cache: nothing is pulled, nothing of ours is left in the machine's store."""

from dataclasses import dataclass
from pathlib import Path

from images.commands import run

# chroot isolation needs no capability that a container lacks
ENVIRONMENT = {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "overlay"}


@dataclass(frozen=True)
class Buildah:
    store: Path

    def has(self, reference: str) -> bool:
        return reference in self._references()

    def build(self, reference: str, containerfile: Path, context: Path, base: str = "") -> None:
        argument = [f"--build-arg=BASE={base}"] if base else []
        self._run("build", "-q", "--pull=never", *argument, "-t", reference, "-f", containerfile, context)

    def save(self, reference: str, archive: Path) -> None:
        """Write an OCI archive, by way of a container: `push` would compress, which costs more than it saves here."""
        partial = archive.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        container = self._run("from", "-q", "--pull=never", reference).strip()
        try:
            self._run("commit", "-q", "--disable-compression", container, f"oci-archive:{partial}:{reference}")
        finally:
            self._run("rm", container)
        partial.rename(archive)

    def remove(self, reference: str) -> None:
        self._run("rmi", "-f", reference)

    def remove_others(self, reference: str) -> None:
        """Remove the images of the same name with other tags."""
        name = reference.rpartition(":")[0]
        for other in self._references():
            if other.rpartition(":")[0] == name and other != reference:
                self.remove(other)

    def _references(self) -> list[str]:
        return self._run("images", "--format", "{{.Name}}:{{.Tag}}").splitlines()

    def _run(self, *words: str | Path) -> str:
        places: list[str | Path] = ["--root", self.store / "root", "--runroot", self.store / "run"]
        return run(["buildah", *places, *words], env=ENVIRONMENT)

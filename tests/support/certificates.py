"""Folders with certificate, key and authority, as `--tls` wants them, signed by authorities of the test's own."""

import itertools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from omni_contract.wire.names import certificate_name
from tests.cluster.certificates import DAYS, Authority, Pair

MODEL, NAMESPACE = "painter", "default"
EXPIRED = "-1"
"""Days from now."""

_editions = itertools.count()


def name_of(component: str, model: str = MODEL) -> str:
    return certificate_name(component, model, NAMESPACE)


@dataclass(frozen=True)
class CertificateMaker:
    """One authority, and the folders for which it signed."""

    root: Path
    authority: Authority

    @classmethod
    def create(cls, root: Path, name: str = "authority") -> Self:
        authority = Authority(root / name)
        authority.create()
        return cls(root, authority)

    def folder_of(self, component: str, days: str = DAYS, model: str = MODEL) -> Path:
        """Of a component of the model "painter" in namespace "default"."""
        return self.folder(f"{component}.{model}{days}", [name_of(component, model)], days)

    def folder(self, name: str, names: Sequence[str], days: str = DAYS) -> Path:
        """Made out to any names; the same folder with a new certificate if it is asked for again."""
        folder = self.root / f"{self.authority.folder.name}-{name}"
        self.fill(folder, self.authority.server(name, names, days))
        return folder

    def fill(self, folder: Path, pair: Pair) -> None:
        """As the kubelet does it: all files at once, by a link that is swapped."""
        fresh, swap = folder / f"..{next(_editions)}", folder / "..data_tmp"
        fresh.mkdir(parents=True)
        files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": self.authority.certificate}
        for name, source in files.items():
            shutil.copy(source, fresh / name)
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(Path("..data", name))
        swap.symlink_to(fresh.name)
        swap.replace(folder / "..data")

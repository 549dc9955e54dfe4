"""Which workers a person means: stages of the models that `omni serve` runs here, or addresses."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from omni_runtime.administration.asking import Worker

OF_STAGE = re.compile(r"([a-z0-9-]+)=(.+)")


class UnknownTargetError(Exception):
    """No worker goes by that name; the message says which there are."""


@dataclass(frozen=True, order=True)
class Target:
    name: str
    address: str
    stage: str = ""
    """Where it must be told apart from other stages: with TLS."""

    @property
    def worker(self) -> Worker:
        return Worker(self.address, self.stage)


def targets(names: Sequence[str], root: Path) -> list[Target]:
    """A stage means all of its replicas, no name all that runs here; what has a colon is an address."""
    here = local_targets(root)
    if not names and not here:
        raise UnknownTargetError("no model is served on this machine; name a stage's address, such as 127.0.0.1:50051")
    return [found for name in names for found in _named(name, here)] if names else here


def remote_targets(names: Sequence[str]) -> list[Target]:
    """Of workers with certificates, each named as STAGE=ADDRESS."""
    found = [OF_STAGE.fullmatch(name) for name in names]
    for name, match in zip(names, found, strict=True):
        if match is None:
            text = f'"{name}" does not say whose certificate to expect; with --tls, name STAGE=HOST:PORT'
            raise UnknownTargetError(f"{text}, such as denoiser=127.0.0.1:50051")
    if not names:
        raise UnknownTargetError("with --tls, name the workers as STAGE=HOST:PORT")
    return [Target(match[0], match[2], match[1]) for match in found if match]


def local_targets(root: Path) -> list[Target]:
    """Every worker below the runtime directory of this user's supervisors, named STAGE-REPLICA."""
    return sorted(Target(socket.stem, f"unix:{socket}") for socket in root.glob("*/*.sock"))


def _named(name: str, here: Iterable[Target]) -> list[Target]:
    if ":" in name:
        return [Target(name, name)]
    found = [one for one in here if name in (one.name, one.name.rpartition("-")[0])]
    if not found:
        known = ", ".join(one.name for one in here) or "none"
        raise UnknownTargetError(f'no stage "{name}" is served on this machine; there is {known}')
    return found

"""Where the test clusters keep files and which ports they take: one frozen object that `main` or a fixture makes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LOCK = REPOSITORY / "requirements" / "dev.txt"


def environment_key() -> str:
    """What the Makefile names the environment of locked packages by."""
    return hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]


@dataclass(frozen=True)
class Settings:
    """Paths are absolute. `venv` and `models` are what pods of the kind cluster see, read-only, at the same places."""

    cache: Path
    venv: Path
    models: Path
    cluster: str = "omni"
    control_port_base: int = 16440
    kind_api_port: int = 16450
    kind_node_port: int = 18080

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        cache = Path(environment.get("OMNI_CACHE") or Path.home() / ".cache" / "omni-operator").absolute()
        return cls(cache=cache, venv=cache / "env" / environment_key(), models=cache / "models")

    @property
    def programs(self) -> Path:
        return self.cache / "programs"

    @property
    def logs(self) -> Path:
        return self.cache / "logs"

    @property
    def control(self) -> Path:
        return self.cache / "control" / "default"

    @property
    def kind(self) -> Path:
        return self.cache / "kind" / self.cluster

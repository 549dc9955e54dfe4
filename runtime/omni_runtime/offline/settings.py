"""How a model runs offline: what `Omni` and `AsyncOmni` take beside the model, checked before anything starts."""

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypedDict

from omni_contract.accelerators import Vendor
from omni_contract.api.nearest import did_you_mean
from omni_contract.wire.logs import LEVELS
from omni_runtime.local.errors import InputError
from omni_runtime.local.settings import ServeSettings, checkpoint_at
from omni_runtime.statistics.settings import StatsSettings

Volumes: TypeAlias = Mapping[str, str | os.PathLike[str]]
QUIET = "warning"
"""A script's own output matters more than what the stages have to tell."""


class Options(TypedDict, total=False):
    stage_configs_path: str | os.PathLike[str]
    """An old stage file to run in place of a model file; `model` is its checkpoint then: a folder, or pvc://CLAIM/PATH."""
    skip_refused: bool
    """Leave out what of the old file cannot be kept, and say so on stderr."""
    device: str
    """Run every stage on this, whatever pool the file names: "cpu", "nvidia" …"""
    allow_fake_engine: bool
    """Accept stages without a model, for tests."""
    log_level: str
    """From which level on the stages' log lines go to stderr; "warning" if left out."""
    stats_dir: str | os.PathLike[str]
    """What each request took goes into JSON lines files there."""
    profile_dir: str | os.PathLike[str]
    """Where `start_profile` writes; without it there are no profiles."""
    max_in_flight: int
    """Most requests at once; as many as keep every stage busy if left out."""


@dataclass(frozen=True)
class OfflineSettings:
    serve: ServeSettings
    """As `omni serve` would be asked for the same."""
    max_in_flight: int | None = None


def settings_of(model: str | os.PathLike[str], volumes: Volumes | None, options: Options) -> OfflineSettings:
    """Raises InputError for what cannot be meant, TypeError for an option that does not exist."""
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(f'unknown option "{name}"{did_you_mean(name, Options.__annotations__)}')
    most = options.get("max_in_flight")
    if most is not None and most < 1:
        raise InputError(f"max_in_flight must be at least 1, got {most}")
    old = _path(options.get("stage_configs_path"))
    checkpoint, beside = (None, ()) if old is None else checkpoint_at(os.fspath(model))
    serve = ServeSettings(
        file=_model_file(model) if old is None else _model_file(old),
        stage_configs=old,
        checkpoint=checkpoint,
        skips_refused=options.get("skip_refused", False),
        environment=dict(os.environ),
        volumes=(*beside, *(f"{claim}={os.fspath(folder)}" for claim, folder in (volumes or {}).items())),
        device=_device(options.get("device")),
        profile_dir=_path(options.get("profile_dir")),
        stats=StatsSettings(directory=_path(options.get("stats_dir"))),
        allow_fake_engine=options.get("allow_fake_engine", False),
        log_level=_level(options.get("log_level", QUIET)),
        is_terminal=sys.stderr.isatty(),
        created=int(time.time()),
    )
    return OfflineSettings(serve, most)


def _model_file(model: str | os.PathLike[str]) -> Path:
    file = Path(model)
    if file.is_dir():
        raise InputError(f"{file} is a folder; give the file of an OmniModel, and the checkpoint's folder in volumes")
    if not file.is_file():
        raise InputError(f"{file}: there is no such file; give the file of an OmniModel, as for `omni serve`")
    return file


def _device(name: str | None) -> Vendor | None:
    if name is not None and name not in list(Vendor):
        raise InputError(f'device "{name}": use one of {", ".join(Vendor)}')
    return None if name is None else Vendor(name)


def _level(name: str) -> str:
    if name not in LEVELS:
        raise InputError(f'log_level "{name}": use one of {", ".join(LEVELS)}')
    return name


def _path(path: str | os.PathLike[str] | None) -> Path | None:
    return None if path is None else Path(path)

"""The operator's settings: one frozen object, read once from the file that the chart mounts (JSON or YAML)."""

from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError

from omni_contract.accelerators import AcceleratorCatalog, ClaimMount, ConfigModel
from omni_operator.errors import SettingsError


class FrontendSettings(ConfigModel):
    """How the pods of every model's frontend are made."""

    image: str
    command: tuple[str, ...] = Field((), description="Replaces the image's interpreter, for example by a mounted one.")
    env: dict[str, str] = Field(default_factory=dict)
    mounts: tuple[ClaimMount, ...] = ()
    requests: dict[str, str] = Field(default_factory=lambda: {"cpu": "100m", "memory": "128Mi"})
    limits: dict[str, str] = Field(default_factory=lambda: {"memory": "1Gi"})


class MasterSettings(ConfigModel):
    """What the master of a managed store may use; its books grow with the payloads that are in the store."""

    requests: dict[str, str] = Field(default_factory=lambda: {"cpu": "100m", "memory": "256Mi"})
    limits: dict[str, str] = Field(default_factory=lambda: {"memory": "1Gi"})


class ImageSettings(ConfigModel):
    """What every pod of a model is told about image pulls."""

    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()


class LeaseSettings(ConfigModel):
    """Who may act when several operators run. The times are those of Kubernetes' own controllers."""

    name: str = "omni-operator"
    duration_seconds: Annotated[int, Field(ge=3)] = 15
    renew_deadline_seconds: Annotated[int, Field(ge=2)] = 10
    retry_seconds: Annotated[float, Field(gt=0)] = 2.0


class LogSettings(ConfigModel):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["json", "text"] = "text"


class Settings(ConfigModel):
    accelerators: AcceleratorCatalog
    frontend: FrontendSettings
    masters: MasterSettings = MasterSettings()
    images: ImageSettings = ImageSettings()
    watch_namespaces: tuple[str, ...] = Field((), description="Empty: every namespace.")
    workers: Annotated[int, Field(ge=1, le=64)] = Field(8, description="Models that are reconciled at the same time.")
    resync_seconds: Annotated[float, Field(gt=0)] = Field(
        600, description="Every model is looked at again after this long, should an event ever be lost."
    )
    probe_port: int = 8080
    metrics_port: int = 9090
    lease: LeaseSettings = LeaseSettings()
    log: LogSettings = LogSettings()


def load_settings(path: Path) -> Settings:
    try:
        return Settings.model_validate(yaml.safe_load(path.read_text()))
    except (OSError, yaml.YAMLError, ValidationError) as problem:
        raise SettingsError(path, problem) from problem


def load_catalog(path: Path) -> AcceleratorCatalog:
    try:
        return AcceleratorCatalog.model_validate(yaml.safe_load(path.read_text()))
    except (OSError, yaml.YAMLError, ValidationError) as problem:
        raise SettingsError(path, problem) from problem

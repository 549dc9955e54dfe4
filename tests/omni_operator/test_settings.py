"""The settings file that the chart mounts."""

from pathlib import Path

import pytest
import yaml

from omni_operator.errors import SettingsError
from omni_operator.settings import Settings, load_catalog, load_settings
from tests.support.operator_models import CATALOG

FILE = {
    "accelerators": CATALOG,
    "frontend": {"image": "frontend:1"},
    "images": {"pullPolicy": "Never", "pullSecrets": ["registry"]},
    "watchNamespaces": ["team"],
    "lease": {"name": "omni"},
    "log": {"level": "debug", "format": "json"},
}


def written(path: Path, content: object) -> Path:
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_file_is_read(tmp_path: Path) -> None:
    settings = load_settings(written(tmp_path / "config.yaml", FILE))
    assert isinstance(settings, Settings)
    assert settings.images.pull_policy == "Never"
    assert set(settings.accelerators.pools) == {"cpu", "h200", "mi300", "ascend910"}
    assert settings.lease.duration_seconds == 15


@pytest.mark.parametrize("broken", [{**FILE, "typo": 1}, {"frontend": {"image": "x"}}, [], None])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, broken: object) -> None:
    path = written(tmp_path / "config.yaml", broken)
    with pytest.raises(SettingsError, match=r"config\.yaml"):
        load_settings(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"absent\.yaml"):
        load_catalog(tmp_path / "absent.yaml")

"""The metadata of our distribution, which processes ask for its version. In an image our packages are plain folders."""

import tomllib
from pathlib import Path

from images.recipes import REPOSITORY


def write(folder: Path) -> None:
    """Put it where importlib.metadata looks: beside the packages."""
    project = _project()
    target = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    target.mkdir()
    (target / "METADATA").write_text(text())


def text() -> str:
    project = _project()
    return f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"


def _project() -> dict[str, str]:
    project: dict[str, str] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return project

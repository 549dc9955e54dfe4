"""What the repository must not hold: addresses of package or image registries, and paths of somebody's machine."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.layout.source import CHECKOUT

REGISTRIES = ("registry.k8s", "docker", "ghcr", "quay", "gcr", "nvcr", "pypi", "pythonhosted", "npmjs", "huggingface")
REGISTRY = re.compile(rf"\b({'|'.join(map(re.escape, REGISTRIES))})\.(io|org|co|com)\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(root|home/(?!user\b|me\b)\w+|work)/")
NO_ADDRESS = {'"docker' + '.io",'}
"""Lines that only look like one: the name of Debian's package."""
NOT_TEXT = {".png", ".webp", ".jpg", ".woff2"}


def committed_texts() -> dict[str, str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout
    paths = [Path(name) for name in listed.split("\0") if name and Path(name).suffix not in NOT_TEXT]
    return {str(path): (CHECKOUT / path).read_text() for path in paths if (CHECKOUT / path).is_file()}


def found(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()[:100]}"
        for path, text in committed_texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line) and line.strip() not in NO_ADDRESS
    ]


def test_no_file_names_a_registry() -> None:
    assert found(REGISTRY) == []


def test_no_file_names_a_path_of_one_machine() -> None:
    assert found(MACHINE_PATH) == []


@pytest.mark.parametrize("line", ["image: quay" + ".io/a/b", "--index-url https://pypi" + ".org/simple"])
def test_a_registry_is_seen(line: str) -> None:
    assert REGISTRY.search(line)


@pytest.mark.parametrize("line", ["cd /ro" + "ot/x", "open('/ho" + "me/ann/x')"])
def test_a_path_of_one_machine_is_seen(line: str) -> None:
    assert MACHINE_PATH.search(line)

"""Content hashes: an image is named by what goes into it, so that nothing is built twice and nothing stale is used."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

LENGTH = 12


def of_text(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:LENGTH]


def of_files(folders: Iterable[Path]) -> str:
    """Hash of the names and contents of all source files below the folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in source_files(folder):
            digest.update(f"{folder.name}/{path.relative_to(folder)}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:LENGTH]


def source_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)

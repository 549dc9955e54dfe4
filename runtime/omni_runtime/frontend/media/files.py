"""Reads local files of requests, only below the folders that are set up for it."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from omni_runtime.frontend.media.fetching import too_many_bytes
from omni_runtime.frontend.media.sources import RefusedSourceError

NOT_ALLOWED = "it is no file below a folder that requests may read from (--media-folder)"


def read_file(path: Path, folders: Sequence[Path], most: int) -> bytes:
    """Raises RefusedSourceError, with one text whether the file is missing or lies elsewhere, or TooManyBytesError."""
    try:
        with _opened(_within(path, folders)) as file:
            data = file.read(most + 1)
    except (OSError, RuntimeError, ValueError) as exc:
        raise RefusedSourceError(NOT_ALLOWED) from exc
    if len(data) > most:
        raise too_many_bytes(most)
    return data


def _within(path: Path, folders: Sequence[Path]) -> Path:
    """Where the path leads to, all links followed. Raises ValueError if that is outside of the folders."""
    real = path.resolve(strict=True)
    if not any(real.is_relative_to(folder.resolve()) for folder in folders):
        raise ValueError(f"{real} is outside")
    return real


def _opened(path: Path) -> BinaryIO:
    """What was a file a moment ago may be a link now; devices and pipes would never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"{path} is no regular file")
    return os.fdopen(descriptor, "rb")

"""Reads local files of requests, only below the folders that are set up for it."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from omni_runtime.frontend.media.fetching import TooManyBytesError
from omni_runtime.frontend.media.sources import RefusedSourceError

NOT_ALLOWED = "it is no file below a folder that requests may read from (--media-folder)"


def read_file(path: Path, folders: Sequence[Path], most: int) -> bytes:
    """Raises RefusedSourceError, with one text whether the file is missing or lies elsewhere, or TooManyBytesError."""
    try:
        real = path.resolve(strict=True)
        if not any(real.is_relative_to(folder.resolve()) for folder in folders):
            raise RefusedSourceError(NOT_ALLOWED)
        # What was a file a moment ago may be a link now; devices and pipes would never end.
        descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, RuntimeError, ValueError) as exc:
        raise RefusedSourceError(NOT_ALLOWED) from exc
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RefusedSourceError(NOT_ALLOWED)
        data = file.read(most + 1)
    if len(data) > most:
        raise TooManyBytesError(f"the file has more than {most:,} bytes")
    return data

"""Opens media files of requests with FFmpeg: from memory, in formats that name no other file."""

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager

import av
from av.container import InputContainer

from omni_runtime.media.unreadable import UnreadableMediaError

FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,ogg,wav,mp3,flac,aac,avi,w64,aiff,caf"
"""Playlists are left out: what they list could be any address or file."""
OPTIONS = {"format_whitelist": FORMATS, "protocol_whitelist": "none"}
BROKEN = (av.FFmpegError, ValueError, IndexError, OverflowError, EOFError)
"""What PyAV raises for bytes that are not as their format says."""


@contextmanager
def opened(data: bytes, kind: str) -> Iterator[InputContainer]:
    """Raises UnreadableMediaError for whatever goes wrong with the file while the block runs."""
    try:
        with av.open(io.BytesIO(data), "r", container_options=OPTIONS) as container:
            yield container
    except UnreadableMediaError:
        raise
    except BROKEN as exc:
        raise UnreadableMediaError(f"it cannot be read as {kind} ({type(exc).__name__})") from exc


class Clock:
    """Ends a decoding that takes too long, between two frames."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._ends_s = time.monotonic() + timeout_s

    def check(self) -> None:
        if time.monotonic() > self._ends_s:
            raise UnreadableMediaError(f"decoding it takes more than {self._timeout_s:g} s")

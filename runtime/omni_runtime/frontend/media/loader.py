"""Media of requests as arrays: found, fetched within their limits, decoded off the event loop."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array
from omni_runtime.frontend.media.addresses import is_public
from omni_runtime.frontend.media.fetching import TooManyBytesError, fetch, too_many_bytes
from omni_runtime.frontend.media.files import read_file
from omni_runtime.frontend.media.settings import MediaSettings
from omni_runtime.frontend.media.sources import Inline, Link, LocalFile, RefusedSourceError, Source, source_of
from omni_runtime.media.decode_image import decode_image
from omni_runtime.media.decode_sound import FASTEST, decode_sound
from omni_runtime.media.decode_video import decode_video
from omni_runtime.media.unreadable import UnreadableMediaError
from omni_runtime.media.values import Clip, Sound, VideoLimits

Result = TypeVar("Result")
SPEECH_RATE = 16_000
"""Samples a second that the models here hear of speech."""
REFUSALS = (TooManyBytesError, RefusedSourceError, UnreadableMediaError)


class MediaLoader:
    """Each method raises OmniError, whose `param` is the field at fault. At most one decoding for each processor."""

    def __init__(self, settings: MediaSettings, max_image_pixels: Callable[[], int]) -> None:
        self._settings = settings
        self._max_image_pixels = max_image_pixels
        self._threads = ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="media-decode")

    async def image(self, url: str, param: str) -> Array:
        most = self._max_image_pixels()
        return await self._decoded(url, param, lambda data: decode_image(data, most))

    async def audio(self, url: str, param: str) -> Sound:
        return await self._decoded(url, param, self._decode_sound)

    async def speech_in(self, data: bytes, param: str) -> Sound:
        """Of a file that has come with the request. What is beyond the rate of speech would only fill the message."""
        try:
            if len(data) > self._settings.max_bytes:
                raise too_many_bytes(self._settings.max_bytes)
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, self._decode_sound, data, SPEECH_RATE
            )
        except REFUSALS as exc:
            raise refused(exc, param) from exc

    async def video(self, url: str, param: str) -> Clip:
        settings = self._settings
        limits = VideoLimits(
            frames=settings.max_video_frames,
            frame_pixels=settings.max_video_frame_pixels,
            seconds=settings.max_video_seconds,
            timeout_s=settings.decode_timeout_s,
        )
        return await self._decoded(url, param, lambda data: decode_video(data, limits))

    async def _decoded(self, url: str, param: str, decode: Callable[[bytes], Result]) -> Result:
        loop = asyncio.get_running_loop()
        try:
            source = source_of(url)
            if isinstance(source, Link):
                data = await fetch(source, self._settings, self._is_allowed)
            else:
                data = await loop.run_in_executor(self._threads, self._read, source)
            return await loop.run_in_executor(self._threads, decode, data)
        except REFUSALS as exc:
            raise refused(exc, param) from exc

    def _decode_sound(self, data: bytes, most_rate: int = FASTEST) -> Sound:
        settings = self._settings
        return decode_sound(data, settings.max_audio_seconds, settings.decode_timeout_s, most_rate)

    def _is_allowed(self, address: str) -> bool:
        return self._settings.allow_private_addresses or is_public(address)

    def _read(self, source: Source) -> bytes:
        match source:
            case Inline():
                return source.data()
            case LocalFile(path):
                return read_file(path, self._settings.folders, self._settings.max_bytes)
            case Link():
                raise AssertionError("links are fetched on the event loop")


def refused(reason: Exception, param: str) -> OmniError:
    """One of REFUSALS, as the client is told of it."""
    code = ErrorCode.PAYLOAD_TOO_LARGE if isinstance(reason, TooManyBytesError) else ErrorCode.INVALID_REQUEST
    return OmniError(code, f"{param}: {reason}", param)

"""Media of requests as arrays: found, fetched within their limits, decoded off the event loop."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array
from omni_runtime.frontend.media.addresses import is_public
from omni_runtime.frontend.media.fetching import TooManyBytesError, fetch
from omni_runtime.frontend.media.files import read_file
from omni_runtime.frontend.media.settings import MediaSettings
from omni_runtime.frontend.media.sources import Inline, Link, LocalFile, RefusedSourceError, Source, source_of
from omni_runtime.media.decode_image import decode_image
from omni_runtime.media.decode_sound import decode_sound
from omni_runtime.media.decode_video import decode_video
from omni_runtime.media.unreadable import UnreadableMediaError
from omni_runtime.media.values import Clip, Sound, VideoLimits

Result = TypeVar("Result")


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
        settings = self._settings
        return await self._decoded(
            url, param, lambda data: decode_sound(data, settings.max_audio_seconds, settings.decode_timeout_s)
        )

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
        except TooManyBytesError as exc:
            raise OmniError(ErrorCode.PAYLOAD_TOO_LARGE, f"{param}: {exc}", param) from exc
        except (RefusedSourceError, UnreadableMediaError) as exc:
            raise OmniError(ErrorCode.INVALID_REQUEST, f"{param}: {exc}", param) from exc

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

"""Encodes images with Pillow, in threads of its own: an encoder must not hold up other requests' events."""

import asyncio
import io
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeAlias

from PIL import Image

from omni_contract.wire.payload import Array

ImageFormat: TypeAlias = Literal["png", "jpeg", "webp"]
FASTEST_PNG = 1


class NotAnImageError(ValueError):
    """The array is not (height, width, 3) of uint8."""


@dataclass(frozen=True)
class ImageFile:
    """`quality` is 0 to 100 and means nothing for png, which loses nothing."""

    format: ImageFormat = "png"
    quality: int = 100


class ImageEncoder:
    """At most as many encodings at once as there are processors."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="image-encode")

    async def encode(self, array: Array, file: ImageFile) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(self._threads, encode_image, array, file)


def encode_image(array: Array, file: ImageFile) -> bytes:
    picture = image_of(array)
    out = io.BytesIO()
    match file.format:
        case "png":
            picture.save(out, "PNG", compress_level=FASTEST_PNG)
        case "jpeg":
            picture.save(out, "JPEG", quality=file.quality)
        case "webp":
            picture.save(out, "WEBP", quality=file.quality)
    return out.getvalue()


def image_of(array: Array) -> Image.Image:
    if array.dtype != "uint8" or len(array.shape) != 3 or array.shape[2] != 3:
        raise NotAnImageError(f"an image is uint8[height, width, 3], got {array.dtype}{list(array.shape)}")
    height, width, _ = array.shape
    return Image.frombytes("RGB", (width, height), bytes(array.data))

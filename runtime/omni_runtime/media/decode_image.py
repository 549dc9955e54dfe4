"""Decodes an image of a request. Its size is looked at before its pixels are."""

import io
import struct
import zlib

from PIL import Image, ImageOps

from omni_contract.wire.payload import Array
from omni_runtime.media.unreadable import UnreadableMediaError

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
BROKEN = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)
"""What Pillow's readers raise for bytes that are not as their format says."""


def decode_image(data: bytes, most_pixels: int) -> Array:
    """The first picture as uint8[height, width, 3], upright; what is transparent becomes white."""
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            width, height = image.size
            if width * height > most_pixels:
                raise UnreadableMediaError(f"{width * height} pixels are more than this model's limit of {most_pixels}")
            picture = _rgb(ImageOps.exif_transpose(image))
    except UnreadableMediaError:
        raise
    except BROKEN as exc:
        raise UnreadableMediaError(f"it cannot be read as an image ({', '.join(FORMATS).lower()})") from exc
    return Array("uint8", (picture.height, picture.width, 3), memoryview(picture.tobytes()))


def _rgb(image: Image.Image) -> Image.Image:
    if not image.has_transparency_data:
        return image.convert("RGB")
    layers = image.convert("RGBA")
    white = Image.new("RGBA", layers.size, "white")
    return Image.alpha_composite(white, layers).convert("RGB")

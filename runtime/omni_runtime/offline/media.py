"""Media as people have them in Python – arrays, PIL pictures, files – as the arrays that stages read."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
from PIL import Image

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Value
from omni_runtime.media.decode_image import decode_image
from omni_runtime.media.decode_sound import decode_sound
from omni_runtime.media.decode_video import decode_video
from omni_runtime.media.unreadable import UnreadableMediaError
from omni_runtime.media.values import VideoLimits

MOST_PIXELS = 2**28
MOST_SECONDS = 24 * 3600.0
DECODING_S = 600.0
MOST_FRAMES = 768
FRAME_PIXELS = 2**20
FRAMES_PER_SECOND = 2.0
"""Of frames whose rate nobody tells, as the models were trained on."""

IMAGE = "a PIL image, uint8[height, width, 3] or a file's path"
AUDIO = "(samples, sample rate) or a file's path"
VIDEO = "uint8[frames, height, width, 3], (frames, frames per second) or a file's path"


def image_part(image: Any, where: str) -> dict[str, Value]:
    """Raises OmniError for what is no image; so do the others for theirs."""
    if isinstance(image, str | os.PathLike):
        return {"type": "image", "image": _read(image, where, lambda data: decode_image(data, MOST_PIXELS))}
    pixels = numpy.asarray(image.convert("RGB") if isinstance(image, Image.Image) else image)
    if pixels.dtype != numpy.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise _wrong(where, IMAGE, pixels)
    return {"type": "image", "image": array_of(pixels)}


def audio_part(audio: Any, where: str) -> dict[str, Value]:
    if isinstance(audio, str | os.PathLike):
        sound = _read(audio, where, lambda data: decode_sound(data, MOST_SECONDS, DECODING_S))
        return {"type": "audio", "audio": sound.samples, "sample_rate": sound.sample_rate}
    if not _is_pair(audio):
        raise _wrong(where, AUDIO, audio)
    samples = numpy.asarray(audio[0])
    if samples.ndim != 1 or samples.dtype.kind != "f" or not samples.size:
        raise _wrong(where, f"{AUDIO}, the samples being floats of one channel from -1 to 1", samples)
    return {"type": "audio", "audio": array_of(samples.astype(numpy.float32)), "sample_rate": int(audio[1])}


def video_part(video: Any, where: str) -> dict[str, Value]:
    if isinstance(video, str | os.PathLike):
        limits = VideoLimits(MOST_FRAMES, FRAME_PIXELS, MOST_SECONDS, DECODING_S)
        clip = _read(video, where, lambda data: decode_video(data, limits))
        part: dict[str, Value] = {"type": "video", "frames": clip.frames, "fps": clip.fps}
        heard = clip.sound and {"audio": clip.sound.samples, "sample_rate": clip.sound.sample_rate}
        return part | (heard or {})
    frames, rate = video if _is_pair(video) else (video, FRAMES_PER_SECOND)
    pixels = numpy.asarray(frames)
    if pixels.dtype != numpy.uint8 or pixels.ndim != 4 or pixels.shape[3] != 3:
        raise _wrong(where, VIDEO, pixels)
    return {"type": "video", "frames": array_of(pixels), "fps": float(rate)}


def listed(media: Any) -> list[Any]:
    """One medium alone, or several of them. A pair of samples and rate is one."""
    return media if isinstance(media, list) else [media]


def array_of(values: "numpy.ndarray[Any, Any]") -> Array:
    dense = numpy.ascontiguousarray(values)
    return Array(str(dense.dtype), dense.shape, dense.data.cast("B"))


def numpy_of(array: Array) -> "numpy.ndarray[Any, Any]":
    """A copy: what a stage has made may lie in memory that is used again."""
    return numpy.frombuffer(array.data, dtype=array.dtype).reshape(array.shape).copy()


def _is_pair(media: Any) -> bool:
    return isinstance(media, Sequence) and len(media) == 2 and isinstance(media[1], int | float)


def _read(path: str | os.PathLike[str], where: str, decode: Any) -> Any:
    try:
        return decode(Path(path).read_bytes())
    except OSError as exc:
        raise OmniError(ErrorCode.INVALID_REQUEST, f"{where}: {path}: {exc.strerror}", where) from exc
    except UnreadableMediaError as exc:
        raise OmniError(ErrorCode.INVALID_REQUEST, f"{where}: {path}: {exc}", where) from exc


def _wrong(where: str, wanted: str, got: Any) -> OmniError:
    kind = f"{got.dtype}{list(got.shape)}" if isinstance(got, numpy.ndarray) else type(got).__name__
    return OmniError(ErrorCode.INVALID_REQUEST, f"{where}: it must be {wanted}, got {kind}", where)

"""Pictures, sound and video of a request as vLLM takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy
from PIL import Image

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Value
from omni_runtime.engines.ar.messages import PARAM, MediaPart

MediaData = dict[str, list[Any]]
"""By modality, in the order of the prompt."""


@dataclass
class Media:
    """What goes with a prompt: the media, and what the model's processor must know about them."""

    data: MediaData = field(default_factory=dict)
    processor: dict[str, Value] = field(default_factory=dict)


def media_of(parts: Sequence[MediaPart], with_metadata: bool) -> Media:
    """The media of a prompt. `with_metadata`: the model asks for frame rates beside its videos."""
    media = Media()
    for part in parts:
        match part["type"]:
            case "image":
                media.data.setdefault("image", []).append(_image(part))
            case "audio":
                media.data.setdefault("audio", []).append((_samples(part), _rate(part)))
            case "video":
                media.data.setdefault("video", []).append(_video(part, with_metadata))
    _add_sound_of_videos(media, parts)
    return media


def _add_sound_of_videos(media: Media, parts: Sequence[MediaPart]) -> None:
    """Processors take the sound of all videos or of none, and then no sound apart from it."""
    videos = [part for part in parts if part["type"] == "video"]
    with_sound = [part for part in videos if part.get("audio") is not None]
    if not with_sound:
        return
    if len(with_sound) < len(videos) or "audio" in media.data:
        text = "either every video of a request has sound and there is no other, or no video has"
        raise OmniError(ErrorCode.INVALID_REQUEST, text, PARAM)
    media.data["audio"] = [(_samples(part), _rate(part)) for part in with_sound]
    media.processor["use_audio_in_video"] = True


def _image(part: MediaPart) -> Image.Image:
    return Image.fromarray(_array(part, "image", "uint8", 3))


def _samples(part: MediaPart) -> "numpy.ndarray[Any, Any]":
    return _array(part, "audio", "float32", 1)


def _video(part: MediaPart, with_metadata: bool) -> Any:
    frames = _array(part, "frames", "uint8", 4)
    fps = part.get("fps")
    if not isinstance(fps, int | float) or fps <= 0:
        raise _malformed(f"a video needs its frame rate, got {fps!r}")
    if not with_metadata:
        return frames
    count = len(frames)
    metadata = {"fps": float(fps), "total_num_frames": count, "duration": count / fps, "do_sample_frames": False}
    return frames, metadata | {"frames_indices": list(range(count))}


def _rate(part: MediaPart) -> int:
    rate = part.get("sample_rate")
    if isinstance(rate, int) and rate > 0:
        return rate
    raise _malformed(f"sound needs its sample rate, got {rate!r}")


def _array(part: Mapping[str, Value], key: str, dtype: str, dimensions: int) -> "numpy.ndarray[Any, Any]":
    value = part.get(key)
    if not isinstance(value, Array) or value.dtype != dtype or len(value.shape) != dimensions:
        got = f"{value.dtype}{list(value.shape)}" if isinstance(value, Array) else type(value).__name__
        raise _malformed(f'"{key}" must be a {dtype} array of {dimensions} dimensions, got {got}')
    if 0 in value.shape:
        raise _malformed(f'"{key}" is empty')
    # The payload may be a view of shared memory that ends with the request; vLLM keeps what it gets in a cache.
    return numpy.frombuffer(value.data, dtype=dtype).reshape(value.shape).copy()


def _malformed(text: str) -> OmniError:
    return OmniError(ErrorCode.INVALID_REQUEST, text, PARAM)

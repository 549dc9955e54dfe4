"""Random media as data URLs: pictures and videos of noise, sounds of noise."""

import base64
import io
import wave
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from omni_runtime.bench.sampler import Bucket, Kind

SOUND_RATE = 16_000
VIDEO_FPS = 8
NOISE_SIDE = 32
"""Noise of this many pixels is scaled up: of full size it would be a file of megabytes."""


@dataclass(frozen=True)
class Media:
    kind: Kind
    url: str


def media_of(dice: Random, bucket: Bucket) -> Media:
    kind = bucket.kind
    data = MAKERS[kind](dice, bucket)
    return Media(kind, f"data:{TYPES[kind]};base64,{base64.b64encode(data).decode()}")


def _image(dice: Random, bucket: Bucket) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.frombytes("RGB", (NOISE_SIDE, NOISE_SIDE), _noise(dice)).resize((bucket.width, bucket.height)).save(
        out, "JPEG"
    )
    return out.getvalue()


def _video(dice: Random, bucket: Bucket) -> bytes:
    import av
    from av.video.stream import VideoStream
    from PIL import Image

    out, size = io.BytesIO(), (bucket.width, bucket.height)
    with av.open(out, "w", format="mp4") as file:
        stream = file.add_stream("mpeg4", rate=VIDEO_FPS)
        assert isinstance(stream, VideoStream)
        # This codec takes whole blocks of two pixels.
        stream.width, stream.height, stream.pix_fmt = *(side + side % 2 for side in size), "yuv420p"
        for number in range(bucket.frames):
            picture = Image.frombytes("RGB", (NOISE_SIDE, NOISE_SIDE), _noise(dice))
            frame = av.VideoFrame.from_image(picture.resize((stream.width, stream.height)))  # type: ignore[no-untyped-call]
            frame.pts, frame.time_base = number, Fraction(1, VIDEO_FPS)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return out.getvalue()


def _sound(dice: Random, bucket: Bucket) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(bucket.frames)
        file.setsampwidth(2)
        file.setframerate(SOUND_RATE)
        file.writeframes(dice.randbytes(2 * bucket.frames * bucket.width * SOUND_RATE))
    return out.getvalue()


def _noise(dice: Random) -> bytes:
    return dice.randbytes(3 * NOISE_SIDE * NOISE_SIDE)


TYPES: Mapping[Kind, str] = {"image": "image/jpeg", "video": "video/mp4", "audio": "audio/wav"}
MAKERS: Mapping[Kind, Callable[[Random, Bucket], bytes]] = {"image": _image, "video": _video, "audio": _sound}

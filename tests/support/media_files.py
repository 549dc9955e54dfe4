"""Makes small media files, as clients send them."""

import base64
import io
import math
from array import array
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import av
from av.audio import AudioStream
from av.video.stream import VideoStream
from PIL import Image

from omni_contract.wire.payload import Array
from omni_runtime.media.audio import AudioFile, AudioFormat, AudioWriting
from omni_runtime.media.decode_sound import decode_sound
from omni_runtime.media.values import Sound

RATE = 16_000


def tone(samples: int = RATE, hz: float = 440.0, rate: int = RATE) -> Sound:
    """A sine whose samples are whole numbers of 16 bits."""
    values = array("f", (round(16_384 * math.sin(math.tau * hz * n / rate)) / 32_768 for n in range(samples)))
    return Sound(Array("float32", (samples,), memoryview(values).cast("B")), rate)


def audio_file(sound: Sound, format: AudioFormat = "wav") -> bytes:
    writing = AudioWriting(AudioFile(format))
    return writing.add(sound) + writing.end()


def image_file(size: tuple[int, int] = (6, 4), color: str = "red", format: str = "PNG", mode: str = "RGB") -> bytes:
    out = io.BytesIO()
    Image.new(mode, size, color).save(out, format)
    return out.getvalue()


def video_file(
    frames: int = 20,
    fps: int = 10,
    size: tuple[int, int] = (32, 16),
    sound: Sound | None = None,
    container: Literal["mp4", "matroska", "webm", "avi"] = "mp4",
) -> bytes:
    """Frame n is gray of brightness 10 n."""
    out = io.BytesIO()
    with av.open(out, "w", format=container) as file:
        video = file.add_stream("mpeg4" if container != "webm" else "libvpx", rate=fps)
        assert isinstance(video, VideoStream)
        video.width, video.height, video.pix_fmt = *size, "yuv420p"
        audio = None if sound is None else file.add_stream("aac", rate=sound.sample_rate, layout="mono")
        for number in range(frames):
            frame = av.VideoFrame(*size, "rgb24")
            frame.planes[0].update(bytes([10 * number % 256]) * frame.planes[0].buffer_size)
            frame.pts, frame.time_base = number, Fraction(1, fps)
            file.mux(video.encode(frame))
        file.mux(video.encode(None))
        if audio is not None and sound is not None:
            _write_sound(file, audio, sound)
    return out.getvalue()


def data_url(data: bytes, kind: str = "application/octet-stream") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def decoded(data: bytes) -> Sound:
    """As PyAV reads it, to the last packet."""
    return decode_sound(data, most_seconds=600, timeout_s=60)


def samples_of(sound: Sound) -> Sequence[float]:
    return array("f", bytes(sound.samples.data))


def _write_sound(file: "av.container.OutputContainer", stream: object, sound: Sound) -> None:
    assert isinstance(stream, AudioStream)
    frame = av.AudioFrame(format="flt", layout="mono", samples=sound.samples.shape[0])
    frame.sample_rate = sound.sample_rate
    frame.planes[0].update(bytes(sound.samples.data))
    file.mux(stream.encode(frame))
    file.mux(stream.encode(None))

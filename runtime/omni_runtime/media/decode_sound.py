"""Decodes the sound of a file of a request to one channel, at the file's own rate or a lower one."""

import av
from av.audio import AudioStream
from av.container import InputContainer

from omni_contract.wire.payload import Array
from omni_runtime.media.audio_frames import samples_of
from omni_runtime.media.containers import Clock, opened
from omni_runtime.media.unreadable import UnreadableMediaError
from omni_runtime.media.values import Sound

SAMPLE_BYTES = 4
FASTEST = 192_000
RATES = range(1_000, FASTEST + 1)


def decode_sound(data: bytes, most_seconds: float, timeout_s: float, most_rate: int = FASTEST) -> Sound:
    """Channels are averaged; sound of more samples a second is brought down to so many. Raises UnreadableMediaError."""
    with opened(data, "audio") as container:
        if not container.streams.audio:
            raise UnreadableMediaError("it holds no audio")
        return sound_of(container, container.streams.audio[0], most_seconds, Clock(timeout_s), most_rate)


def sound_of(
    container: InputContainer, stream: AudioStream, most_seconds: float, clock: Clock, most_rate: int = FASTEST
) -> Sound:
    if stream.sample_rate not in RATES:
        raise UnreadableMediaError(f"its sample rate is {stream.sample_rate} Hz")
    rate = min(stream.sample_rate, most_rate)
    resampler, samples = av.AudioResampler(format="flt", layout="mono", rate=rate), bytearray()
    for frame in container.decode(stream):
        clock.check()
        samples += _mono(resampler, frame)
        if len(samples) > most_seconds * rate * SAMPLE_BYTES:
            raise UnreadableMediaError(f"it is longer than the limit of {most_seconds:g} s")
    samples += _mono(resampler, None)
    if not samples:
        raise UnreadableMediaError("it holds no sound")
    return Sound(Array("float32", (len(samples) // SAMPLE_BYTES,), memoryview(samples)), rate)


def _mono(resampler: av.AudioResampler, frame: av.AudioFrame | None) -> bytes:
    return b"".join(samples_of(made, SAMPLE_BYTES) for made in resampler.resample(frame))

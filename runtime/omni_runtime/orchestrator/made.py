"""What of a kind that people count was in the answers of a stage. Pure: a payload in, numbers out."""

from collections.abc import Iterable
from dataclasses import dataclass

from omni_contract.wire.payload import Array, Payload, Value


@dataclass(frozen=True, slots=True)
class Made:
    """`resolution` is "WIDTHxHEIGHT" of the newest picture; an audio frame is one sample of each channel."""

    images: int = 0
    resolution: str = ""
    audio_frames: int = 0
    audio_s: float = 0.0
    """0 of sound that does not say how fast its samples follow each other."""

    def __add__(self, other: "Made") -> "Made":
        return Made(
            self.images + other.images,
            other.resolution or self.resolution,
            self.audio_frames + other.audio_frames,
            self.audio_s + other.audio_s,
        )


NOTHING_MADE = Made()


def made_of(payloads: Iterable[Payload]) -> Made:
    made = NOTHING_MADE
    for payload in payloads:
        if isinstance(image := payload.get("image"), Array):
            made += _pictures(image)
        if isinstance(audio := payload.get("audio"), Array):
            made += _sound(audio, payload.get("sample_rate"))
    return made


def _sound(audio: Array, sample_rate: Value) -> Made:
    frames = max(audio.shape, default=0)
    is_told = isinstance(sample_rate, int) and sample_rate > 0
    return Made(audio_frames=frames, audio_s=frames / int(str(sample_rate)) if is_told else 0.0)


def _pictures(image: Array) -> Made:
    """Rows, columns and colors, with the number of pictures before them if there are several."""
    if len(image.shape) not in (3, 4):
        return NOTHING_MADE
    *count, height, width, _ = image.shape
    return Made(images=count[0] if count else 1, resolution=f"{width}x{height}")

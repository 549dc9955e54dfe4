"""What of a kind that people count was in the answers of a stage. Pure: a payload in, numbers out."""

from collections.abc import Iterable
from dataclasses import dataclass

from omni_contract.wire.payload import Array, Payload


@dataclass(frozen=True, slots=True)
class Made:
    """`resolution` is "WIDTHxHEIGHT" of the newest picture; an audio frame is one sample of each channel."""

    images: int = 0
    resolution: str = ""
    audio_frames: int = 0

    def __add__(self, other: "Made") -> "Made":
        return Made(
            self.images + other.images, other.resolution or self.resolution, self.audio_frames + other.audio_frames
        )


NOTHING_MADE = Made()


def made_of(payloads: Iterable[Payload]) -> Made:
    made = NOTHING_MADE
    for payload in payloads:
        if isinstance(image := payload.get("image"), Array):
            made += _pictures(image)
        if isinstance(audio := payload.get("audio"), Array):
            made += Made(audio_frames=max(audio.shape, default=0))
    return made


def _pictures(image: Array) -> Made:
    """Rows, columns and colors, with the number of pictures before them if there are several."""
    if len(image.shape) not in (3, 4):
        return NOTHING_MADE
    *count, height, width, _ = image.shape
    return Made(images=count[0] if count else 1, resolution=f"{width}x{height}")

"""Media as the stages read them: plain arrays with what is needed to make sense of them."""

from dataclasses import dataclass

from omni_contract.wire.payload import Array


@dataclass(frozen=True)
class Sound:
    """`samples` is float32[samples], one channel, -1 to 1."""

    samples: Array
    sample_rate: int

    @property
    def seconds(self) -> float:
        return self.samples.shape[0] / self.sample_rate


@dataclass(frozen=True)
class Clip:
    """`frames` is uint8[frames, height, width, 3], evenly spaced; `fps` is of these frames, not of the file's."""

    frames: Array
    fps: float
    sound: Sound | None = None


@dataclass(frozen=True)
class VideoLimits:
    """`frames` are read at most, evenly spaced; larger ones than `frame_pixels` are scaled down."""

    frames: int
    frame_pixels: int
    seconds: float
    timeout_s: float

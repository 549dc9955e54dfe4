"""Sound as FFmpeg's frames, and what is done to them before they are encoded. One channel throughout."""

from collections.abc import Iterator
from fractions import Fraction

import av
from av.filter import Graph

from omni_runtime.media.values import Sound

SLOWEST_TEMPO, FASTEST_TEMPO = 0.5, 2.0
"""FFmpeg's filter goes no slower, and leaves out sound where it goes faster, so that such a speed takes two of them."""


def frame_of(sound: Sound) -> av.AudioFrame:
    frame = av.AudioFrame(format="flt", layout="mono", samples=sound.samples.shape[0])
    frame.sample_rate = sound.sample_rate
    frame.planes[0].update(bytes(sound.samples.data))
    return frame


def silence(samples: int, sample_rate: int) -> av.AudioFrame:
    frame = av.AudioFrame(format="flt", layout="mono", samples=samples)
    frame.sample_rate = sample_rate
    frame.planes[0].update(bytes(frame.planes[0].buffer_size))
    return frame


def samples_of(frame: av.AudioFrame, sample_bytes: int) -> bytes:
    """The frame's samples; its buffer is longer than they are."""
    return bytes(frame.planes[0])[: frame.samples * sample_bytes]


class Int16:
    """Turns frames into 16-bit samples, rounded to the nearest."""

    def __init__(self) -> None:
        self._resampler = av.AudioResampler(format="s16", layout="mono")

    def convert(self, frame: av.AudioFrame | None) -> bytes:
        return b"".join(samples_of(made, 2) for made in self._resampler.resample(frame))


class Tempo:
    """Speaks faster or slower at the same pitch."""

    def __init__(self, speed: float, sample_rate: int) -> None:
        graph = Graph()
        source = graph.add_abuffer(
            sample_rate=sample_rate, format="flt", layout="mono", time_base=Fraction(1, sample_rate)
        )
        for step in _steps(speed):
            tempo = graph.add("atempo", f"{step:.6f}")
            source.link_to(tempo)
            source = tempo
        source.link_to(graph.add("abuffersink"))
        graph.configure()
        self._graph = graph
        self._samples = 0

    def stretch(self, frame: av.AudioFrame | None) -> Iterator[av.AudioFrame]:
        """What has come out so far; None says that no more goes in."""
        if frame is not None:
            frame.pts, self._samples = self._samples, self._samples + frame.samples
            frame.time_base = Fraction(1, frame.sample_rate)
        self._graph.push(frame)
        while True:
            try:
                made = self._graph.pull()
            except (av.BlockingIOError, av.EOFError):
                return
            assert isinstance(made, av.AudioFrame)
            yield made


def _steps(speed: float) -> list[float]:
    nearest = min(max(speed, SLOWEST_TEMPO), FASTEST_TEMPO)
    return [speed] if speed == nearest else [nearest, speed / nearest]

"""Sound at another rate, by FFmpeg."""

from typing import Any

import av
import numpy


def resampled(samples: "numpy.ndarray[Any, Any]", rate: int, wanted: int) -> "numpy.ndarray[Any, Any]":
    """float32 samples (length,) of one channel."""
    if rate == wanted:
        return samples
    frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="flt", layout="mono")
    frame.sample_rate = rate
    resampler = av.AudioResampler(format="flt", layout="mono", rate=wanted)
    parts = [made.to_ndarray()[0] for part in (frame, None) for made in resampler.resample(part)]
    return numpy.concatenate(parts) if parts else samples[:0]

"""Decodes a video of a request: evenly spaced frames, and its sound."""

import math
from collections.abc import Iterator

import av
from av.container import InputContainer
from av.video.stream import VideoStream

from omni_contract.wire.payload import Array
from omni_runtime.media.containers import Clock, opened
from omni_runtime.media.decode_sound import sound_of
from omni_runtime.media.unreadable import UnreadableMediaError
from omni_runtime.media.values import Clip, Sound, VideoLimits

FRAMES_PER_SECOND = 2.0
"""As the models were trained on; longer videos have fewer, so that they fit."""
LARGEST_FRAME_PIXELS = 4096 * 4096
"""Of the file: a larger one would take more memory to decode than a request is worth."""


def decode_video(data: bytes, limits: VideoLimits) -> Clip:
    """Raises UnreadableMediaError."""
    clock = Clock(limits.timeout_s)
    with opened(data, "video") as container:
        if not container.streams.video:
            raise UnreadableMediaError("it holds no video")
        stream = container.streams.video[0]
        seconds = _seconds(container, stream)
        if seconds > limits.seconds:
            raise UnreadableMediaError(f"it is longer than the limit of {limits.seconds:g} s")
        frames = list(_spaced(container, stream, seconds, limits, clock))
    if not frames:
        raise UnreadableMediaError("it holds no frame")
    return Clip(_stacked(frames), len(frames) / seconds, _sound(data, limits, clock))


def _seconds(container: InputContainer, stream: VideoStream) -> float:
    """As the file says, else as its last packet does."""
    if stream.duration is not None and stream.time_base is not None:
        seconds = float(stream.duration * stream.time_base)
    elif container.duration is not None:
        seconds = container.duration / av.time_base
    else:
        ends = [_end(packet) for packet in container.demux(stream)]
        container.seek(0)
        seconds = max(ends, default=0.0)
    if seconds <= 0:
        raise UnreadableMediaError("it does not say how long it is")
    return seconds


def _end(packet: "av.Packet[VideoStream]") -> float:
    """In seconds from the beginning; 0 for one that does not say when it is."""
    if packet.pts is None or packet.time_base is None:
        return 0.0
    return float((packet.pts + (packet.duration or 0)) * packet.time_base)


def _spaced(
    container: InputContainer, stream: VideoStream, seconds: float, limits: VideoLimits, clock: Clock
) -> Iterator[av.VideoFrame]:
    """Frames at even times from the first on, all of one size."""
    count = max(1, min(limits.frames, math.ceil(seconds * FRAMES_PER_SECOND)))
    size, taken, start = None, 0, None
    for frame in container.decode(stream):
        clock.check()
        start = frame.time if start is None else start
        if frame.time is None or start is None or frame.time - start >= taken * seconds / count:
            size = size or _size(frame, limits.frame_pixels)
            yield frame.reformat(*size, format="rgb24")
            taken += 1
        if taken == count:
            return


def _size(frame: av.VideoFrame, most_pixels: int) -> tuple[int, int]:
    """Width and height, scaled down to so many pixels if they have more."""
    if frame.width * frame.height > LARGEST_FRAME_PIXELS:
        raise UnreadableMediaError(f"frames of {frame.width} x {frame.height} pixels are too large")
    scale = min(1.0, math.sqrt(most_pixels / (frame.width * frame.height)))
    return max(1, int(frame.width * scale)), max(1, int(frame.height * scale))


def _stacked(frames: list[av.VideoFrame]) -> Array:
    height, width = frames[0].height, frames[0].width
    pixels = bytearray()
    for frame in frames:
        plane = frame.planes[0]
        rows, row_bytes = memoryview(plane), plane.line_size
        for row in range(height):
            pixels += rows[row * row_bytes : row * row_bytes + width * 3]
    return Array("uint8", (len(frames), height, width, 3), memoryview(pixels))


def _sound(data: bytes, limits: VideoLimits, clock: Clock) -> Sound | None:
    """Read in a pass of its own, since frames and sound lie among each other in the file."""
    with opened(data, "video") as container:
        if not container.streams.audio:
            return None
        return sound_of(container, container.streams.audio[0], limits.seconds, clock)

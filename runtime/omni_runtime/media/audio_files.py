"""Audio files in the making: frames go in, the file's bytes come out."""

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import av
from av.audio import AudioStream

from omni_runtime.media.audio_frames import Int16, silence

UNKNOWN_SIZE = 0xFFFF_FFFF
"""Players take it for "until the stream ends"."""
WAV_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
PCM_TAG, SAMPLE_BYTES, RIFF_OVERHEAD = 1, 2, 36


class AudioCoder(Protocol):
    def add(self, frame: av.AudioFrame) -> bytes:
        """The bytes that are there now, which may be none."""
        ...

    def end(self) -> bytes:
        """The rest."""
        ...


class RawFile:
    """Samples of 16 bits, with a WAV header or without."""

    def __init__(self, sample_rate: int, has_header: bool, is_streamed: bool) -> None:
        self._int16 = Int16()
        self._sample_rate = sample_rate
        self._has_header = has_header
        self._is_streamed = is_streamed
        self._header = wav_header(sample_rate, None) if has_header and is_streamed else b""
        self._kept = bytearray()

    def add(self, frame: av.AudioFrame) -> bytes:
        data = self._int16.convert(frame)
        if not self._is_streamed:
            self._kept += data
            return b""
        header, self._header = self._header, b""
        return header + data

    def end(self) -> bytes:
        data = bytes(self._kept) + self._int16.convert(None)
        header = self._header
        if self._has_header and not self._is_streamed:
            header = wav_header(self._sample_rate, len(data))
        return header + data


def wav_header(sample_rate: int, data_bytes: int | None) -> bytes:
    """Of one channel of 16 bits; None for a length that is not known yet."""
    size = UNKNOWN_SIZE if data_bytes is None else data_bytes
    riff_size = UNKNOWN_SIZE if data_bytes is None else data_bytes + RIFF_OVERHEAD
    chunks = b"RIFF", riff_size, b"WAVE", b"fmt ", 16, PCM_TAG, 1
    rates = sample_rate, sample_rate * SAMPLE_BYTES, SAMPLE_BYTES, 8 * SAMPLE_BYTES
    return WAV_HEADER.pack(*chunks, *rates, b"data", size)


@dataclass(frozen=True)
class Codec:
    """FFmpeg's names of the encoder and of the container, and how many bits a second of speech gets."""

    encoder: str
    container: str
    bit_rate: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)


OPTIONS = {"flush_packets": "1", "fflags": "+bitexact"}
"""What is there goes out at once, and the same sound gives the same bytes."""
CODECS: Mapping[str, Codec] = {
    "mp3": Codec("libmp3lame", "mp3", 128_000),
    # A page for each packet: players then know where even the shortest file ends, and a stream comes at once.
    "opus": Codec("libopus", "ogg", 64_000, {"page_duration": "20000"}),
    "aac": Codec("aac", "adts", 96_000),
    "flac": Codec("flac", "flac"),
}


class CodecFile:
    """A file of one of the codecs. A whole file ends by writing into its beginning how long it is."""

    def __init__(self, format: str, sample_rate: int, is_streamed: bool) -> None:
        codec = CODECS[format]
        self._sink: _Sink | io.BytesIO = _Sink() if is_streamed else io.BytesIO()
        options = {**OPTIONS, **codec.options}
        self._container = av.open(self._sink, "w", format=codec.container, options=options)
        stream = self._container.add_stream(codec.encoder, rate=usable_rate(codec.encoder, sample_rate))
        assert isinstance(stream, AudioStream)
        self._stream = stream
        self._stream.layout = "mono"
        if codec.bit_rate is not None:
            self._stream.bit_rate = codec.bit_rate
        self._sample_rate = sample_rate
        self._is_empty = True

    def add(self, frame: av.AudioFrame) -> bytes:
        self._is_empty = False
        self._container.mux(self._stream.encode(frame))
        return self._sink.taken() if isinstance(self._sink, _Sink) else b""

    def end(self) -> bytes:
        """Encoders write no file without sound: its shortest one has a sample of silence."""
        started = self.add(silence(1, self._sample_rate)) if self._is_empty else b""
        self._container.mux(self._stream.encode(None))
        self._container.close()
        return started + (self._sink.taken() if isinstance(self._sink, _Sink) else self._sink.getvalue())


class _Sink:
    """A file that can only be written on, as a connection can."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def taken(self) -> bytes:
        """What was written since the last call."""
        written, self._written = bytes(self._written), bytearray()
        return written


def usable_rate(encoder: str, sample_rate: int) -> int:
    """The rate itself if the encoder has it, else the next higher one, else its highest."""
    rates = av.Codec(encoder, "w").audio_rates
    if not rates or sample_rate in rates:
        return sample_rate
    return min((rate for rate in rates if rate > sample_rate), default=max(rates))

"""Encodes sound with FFmpeg, in threads of its own, as a whole file or bit by bit as the sound comes."""

import asyncio
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeAlias

from omni_runtime.media.audio_files import AudioCoder, CodecFile, RawFile
from omni_runtime.media.audio_frames import Tempo, frame_of
from omni_runtime.media.values import Sound

AudioFormat: TypeAlias = Literal["wav", "mp3", "flac", "opus", "aac", "pcm"]
MEDIA_TYPES: Mapping[AudioFormat, str] = {
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "flac": "audio/flac",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "pcm": "audio/pcm",
}
"""pcm is 16 bit, little endian, one channel, at the model's rate."""
USUAL_RATE = 24_000
"""Of a file that never had any sound."""


class MixedRatesError(ValueError):
    """Sound of two sample rates cannot be in one file."""


@dataclass(frozen=True)
class AudioFile:
    """A streamed file says nowhere how long it is, since nobody knows when it begins."""

    format: AudioFormat = "wav"
    is_streamed: bool = False
    speed: float = 1.0


class AudioEncoder:
    """At most as many encodings at once as there are processors."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="audio-encode")

    def writer(self, file: AudioFile) -> "AudioWriter":
        return AudioWriter(file, self._threads)


class AudioWriter:
    """One file in the making. Bytes of a streamed file come as soon as they are there, of another one at its end."""

    def __init__(self, file: AudioFile, threads: ThreadPoolExecutor) -> None:
        self._writing = AudioWriting(file)
        self._threads = threads

    @property
    def has_begun(self) -> bool:
        return self._writing.has_begun

    @property
    def sample_rate(self) -> int:
        """Of the sound, as the model makes it."""
        return self._writing.sample_rate

    async def add(self, sound: Sound) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._writing.add, sound)

    async def end(self) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._writing.end)


class AudioWriting:
    """The same on the thread that it is called on."""

    def __init__(self, file: AudioFile) -> None:
        self._file = file
        self.sample_rate = USUAL_RATE
        self._coder: AudioCoder | None = None
        self._tempo: Tempo | None = None

    def add(self, sound: Sound) -> bytes:
        """Raises MixedRatesError for sound of another rate than that before it."""
        if self._coder is None:
            self._coder = self._begun(sound.sample_rate)
        if sound.sample_rate != self.sample_rate:
            raise MixedRatesError(f"sound of {sound.sample_rate} Hz after sound of {self.sample_rate} Hz")
        if not sound.samples.shape[0]:
            return b""
        frame = frame_of(sound)
        frames = [frame] if self._tempo is None else self._tempo.stretch(frame)
        return b"".join(map(self._coder.add, frames))

    def end(self) -> bytes:
        """A file without any sound is a file nevertheless."""
        if self._coder is None:
            self._coder = self._begun(USUAL_RATE)
        stretched = () if self._tempo is None else self._tempo.stretch(None)
        return b"".join([*map(self._coder.add, stretched), self._coder.end()])

    @property
    def has_begun(self) -> bool:
        return self._coder is not None

    def _begun(self, sample_rate: int) -> AudioCoder:
        self.sample_rate = sample_rate
        self._tempo = None if self._file.speed == 1 else Tempo(self._file.speed, sample_rate)
        return coder_of(self._file, sample_rate)


def coder_of(file: AudioFile, sample_rate: int) -> AudioCoder:
    if file.format in ("wav", "pcm"):
        return RawFile(sample_rate, has_header=file.format == "wav", is_streamed=file.is_streamed)
    return CodecFile(file.format, sample_rate, file.is_streamed)

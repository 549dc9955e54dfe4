"""Sound becomes a file of every format, whole or bit by bit, with every sample in it."""

import io
import struct
import wave
from array import array
from collections.abc import Iterator
from itertools import pairwise
from math import ceil

import av
import pytest

from omni_contract.wire.payload import Array
from omni_runtime.media.audio import AudioEncoder, AudioFile, AudioFormat, AudioWriting, MixedRatesError
from omni_runtime.media.values import Sound
from tests.support.media_files import decoded, samples_of, tone

RATE = 24_000
EXACT: list[AudioFormat] = ["wav", "flac", "opus"]
PADDED: list[AudioFormat] = ["mp3", "aac"]
FORMATS: list[AudioFormat] = [*EXACT, *PADDED]


def pieces(sound: Sound, samples: int) -> Iterator[Sound]:
    data = sound.samples.data
    for start in range(0, sound.samples.shape[0], samples):
        piece = data[4 * start : 4 * (start + samples)]
        yield Sound(Array("float32", (piece.nbytes // 4,), piece), sound.sample_rate)


def written(sound: Sound, file: AudioFile, samples: int = 777) -> list[bytes]:
    """What comes out for each piece that goes in, and at the end."""
    writing = AudioWriting(file)
    return [*(writing.add(piece) for piece in pieces(sound, samples)), writing.end()]


def to_int16(sound: Sound) -> bytes:
    return array("h", (round(32_768 * sample) for sample in samples_of(sound))).tobytes()


@pytest.mark.case("runtime:A20")
@pytest.mark.parametrize("samples", [1000, 9607])
@pytest.mark.parametrize("is_streamed", [True, False])
@pytest.mark.parametrize("format", EXACT)
def test_every_sample_is_there_at_the_end_of_the_last_packet(
    format: AudioFormat, is_streamed: bool, samples: int
) -> None:
    sound = decoded(b"".join(written(tone(samples, rate=RATE), AudioFile(format, is_streamed))))
    assert sound.samples.shape[0] == ceil(samples * sound.sample_rate / RATE)


@pytest.mark.case("runtime:A20")
@pytest.mark.parametrize(("format", "frame"), [("mp3", 576), ("aac", 1024)])
def test_formats_without_an_end_of_their_own_are_padded_to_whole_frames_when_streamed(
    format: AudioFormat, frame: int
) -> None:
    for samples in (1000, 9607):
        sound = decoded(b"".join(written(tone(samples, rate=RATE), AudioFile(format, is_streamed=True))))
        extra = sound.samples.shape[0] - samples
        assert 0 < extra < 4 * frame and sound.samples.shape[0] % frame == 0


def test_a_whole_mp3_says_where_its_sound_begins_and_ends() -> None:
    for samples in (1000, 9607):
        assert decoded(b"".join(written(tone(samples, rate=RATE), AudioFile("mp3")))).samples.shape[0] == samples


@pytest.mark.parametrize("format", ["wav", "flac"])
def test_nothing_is_lost_by_formats_that_promise_it(format: AudioFormat) -> None:
    sound = tone(5000, rate=RATE)
    assert samples_of(decoded(b"".join(written(sound, AudioFile(format, is_streamed=True))))) == samples_of(sound)


@pytest.mark.parametrize("format", [*PADDED, "opus"])
def test_lossy_formats_sound_like_what_went_in(format: AudioFormat) -> None:
    sound = decoded(b"".join(written(tone(RATE, rate=RATE), AudioFile(format, is_streamed=True))))
    assert crossings(sound) == pytest.approx(2 * 440, rel=0.03)


def crossings(sound: Sound) -> float:
    """Changes of sign in a second, from the middle of the sound."""
    samples = samples_of(sound)
    middle = samples[len(samples) // 4 : 3 * len(samples) // 4]
    changes = sum(one * other < 0 for one, other in pairwise(middle))
    return changes * sound.sample_rate / len(middle)


@pytest.mark.case("runtime:A17")
@pytest.mark.parametrize("format", [*FORMATS, "pcm"])
def test_a_streamed_file_comes_while_its_sound_still_does(format: AudioFormat) -> None:
    *during, _ = written(tone(RATE, rate=RATE), AudioFile(format, is_streamed=True), samples=1920)
    assert sum(map(bool, during)) >= 2
    assert next(index for index, data in enumerate(during) if data) <= 2


def test_a_whole_file_comes_at_its_end_alone() -> None:
    assert not any(written(tone(RATE, rate=RATE), AudioFile("flac"))[:-1])


@pytest.mark.case("runtime:A19")
def test_a_wav_header_says_the_length_or_that_nobody_knows_it() -> None:
    sound = tone(1234, rate=RATE)
    whole, streamed = (b"".join(written(sound, AudioFile("wav", is_streamed))) for is_streamed in (False, True))
    assert struct.unpack("<4sI", whole[:8]) == (b"RIFF", 36 + 2 * 1234)
    assert struct.unpack("<4sI", whole[36:44]) == (b"data", 2 * 1234)
    assert struct.unpack("<4sI", streamed[:8]) == (b"RIFF", 0xFFFFFFFF)
    assert struct.unpack("<4sI", streamed[36:44]) == (b"data", 0xFFFFFFFF)
    assert streamed[44:] == whole[44:] == to_int16(sound)
    for data in (whole, streamed):
        with wave.open(io.BytesIO(data)) as file:
            assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, RATE)
            assert file.readframes(10_000) == to_int16(sound)


def test_pcm_is_the_samples_and_nothing_else() -> None:
    sound = tone(1234, rate=RATE)
    assert b"".join(written(sound, AudioFile("pcm", is_streamed=True))) == to_int16(sound)


def test_samples_beyond_full_scale_are_clipped_not_wrapped() -> None:
    loud = array("f", [2.0, -2.0])
    sound = Sound(Array("float32", (2,), memoryview(loud).cast("B")), RATE)
    assert b"".join(written(sound, AudioFile("pcm"))) == struct.pack("<2h", 32_767, -32_768)


@pytest.mark.parametrize("speed", [0.25, 0.7, 1.5, 4.0])
def test_speed_changes_how_long_it_takes_and_not_how_high_it_sounds(speed: float) -> None:
    file = AudioFile("wav", speed=speed)
    sound = decoded(b"".join(written(tone(RATE, rate=RATE), file)))
    assert sound.seconds == pytest.approx(1 / speed, rel=0.02, abs=0.03)
    assert crossings(sound) == pytest.approx(2 * 440, rel=0.06)


@pytest.mark.case("runtime:S6")
@pytest.mark.parametrize("is_streamed", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_no_sound_at_all_is_a_file_that_players_open(format: AudioFormat, is_streamed: bool) -> None:
    data = AudioWriting(AudioFile(format, is_streamed)).end()
    with av.open(io.BytesIO(data)) as file:
        assert sum(frame.samples for frame in file.decode(audio=0)) <= 2048


@pytest.mark.parametrize("rate", [16_000, 22_050, 44_100])
def test_a_rate_that_a_format_does_not_have_becomes_one_that_it_has(rate: int) -> None:
    sound = decoded(b"".join(written(tone(rate, rate=rate), AudioFile("opus"))))
    assert sound.sample_rate == 48_000 and sound.seconds == pytest.approx(1, abs=0.01)


def test_two_rates_cannot_be_in_one_file() -> None:
    writing = AudioWriting(AudioFile("wav"))
    writing.add(tone(10, rate=RATE))
    with pytest.raises(MixedRatesError, match="16000 Hz after sound of 24000 Hz"):
        writing.add(tone(10, rate=16_000))


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_sound_gives_the_same_bytes(format: AudioFormat) -> None:
    one, other = (b"".join(written(tone(5000, rate=RATE), AudioFile(format, is_streamed=True))) for _ in range(2))
    assert one == other


async def test_encoding_leaves_the_event_loop_alone() -> None:
    writer = AudioEncoder().writer(AudioFile("wav"))
    assert not writer.has_begun
    assert await writer.add(tone(100, rate=RATE)) == b""
    assert (writer.has_begun, writer.sample_rate) == (True, RATE)
    assert len(await writer.end()) == 44 + 200

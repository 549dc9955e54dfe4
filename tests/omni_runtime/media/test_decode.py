"""Media of requests become arrays, whatever file they come in; what is damaged, too large or no media is refused."""

import io
import random
from collections.abc import Callable
from typing import Any, Literal

import pytest
from PIL import Image

from omni_runtime.media.decode_image import decode_image
from omni_runtime.media.decode_sound import decode_sound
from omni_runtime.media.decode_video import decode_video
from omni_runtime.media.unreadable import UnreadableMediaError
from omni_runtime.media.values import VideoLimits
from tests.support.media_files import audio_file, image_file, samples_of, tone, video_file

PIXELS = 10_000
LIMITS = VideoLimits(frames=8, frame_pixels=1024, seconds=60, timeout_s=10)
HLS = b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"
CONCAT = b"ffconcat version 1.0\nfile /etc/passwd\n"


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_an_image_of_every_format_becomes_rgb(format: str) -> None:
    array = decode_image(image_file((6, 4), "red", format), PIXELS)
    assert (array.dtype, array.shape) == ("uint8", (4, 6, 3))
    red, green, blue = array.data[:3]
    assert red > 240 and green < 15 and blue < 15


@pytest.mark.parametrize(("mode", "color"), [("L", "white"), ("P", "white"), ("RGBA", "#ff000000"), ("LA", "white")])
def test_gray_palette_and_transparency_become_rgb_on_white(mode: str, color: str) -> None:
    assert bytes(decode_image(image_file((2, 2), color, "PNG", mode), PIXELS).data) == b"\xff" * 12


def test_a_photograph_is_turned_upright() -> None:
    out, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (6, 4)).save(out, "JPEG", exif=exif)
    assert decode_image(out.getvalue(), PIXELS).shape == (6, 4, 3)


@pytest.mark.case("runtime:Q2")
def test_an_image_that_would_unpack_to_too_many_pixels_is_not_unpacked() -> None:
    bomb = image_file((1000, 1000), "red", "PNG")
    assert len(bomb) < 10_000
    with pytest.raises(UnreadableMediaError, match="1000000 pixels are more than this model's limit of 10000"):
        decode_image(bomb, PIXELS)


@pytest.mark.parametrize("format", ["wav", "flac"])
def test_sound_comes_back_sample_by_sample_at_its_own_rate(format: Literal["wav", "flac"]) -> None:
    sound = decode_sound(audio_file(tone(1234), format), 10, 10)
    assert sound.sample_rate == 16_000
    assert samples_of(sound) == samples_of(tone(1234))


@pytest.mark.parametrize("format", ["mp3", "opus", "aac"])
def test_sound_of_every_lossy_format_is_read(format: Literal["mp3", "opus", "aac"]) -> None:
    sound = decode_sound(audio_file(tone(16_000), format), 10, 10)
    assert 1.0 <= sound.seconds < 1.2
    assert 0.4 < max(samples_of(sound)[4000:8000]) < 0.6


def test_sound_over_the_limit_is_refused() -> None:
    with pytest.raises(UnreadableMediaError, match=r"longer than the limit of 0\.5 s"):
        decode_sound(audio_file(tone(16_000)), 0.5, 10)


@pytest.mark.parametrize(("rate", "wanted"), [(48_000, 16_000), (16_000, 16_000), (8_000, 8_000)])
def test_sound_is_brought_down_to_a_rate_and_never_up(rate: int, wanted: int) -> None:
    sound = decode_sound(audio_file(tone(rate, rate=rate)), 10, 10, 16_000)
    assert (sound.sample_rate, sound.samples.shape) == (wanted, (wanted,))
    assert max(samples_of(sound)) == pytest.approx(0.5, abs=0.02), "it is as loud as before"


@pytest.mark.case("runtime:K13")
@pytest.mark.parametrize("container", ["mp4", "matroska", "webm", "avi"])
def test_a_video_gives_evenly_spaced_frames_and_its_sound(container: Any) -> None:
    clip = decode_video(
        video_file(20, 10, sound=tone(32_000) if container == "mp4" else None, container=container), LIMITS
    )
    assert clip.frames.shape == (4, 16, 32, 3)
    assert clip.fps == pytest.approx(2.0, rel=0.1)
    grays = [clip.frames.data[number * 16 * 32 * 3] for number in range(4)]
    assert all(abs(gray - 50 * number) < 16 for number, gray in enumerate(grays))
    assert (clip.sound is not None) == (container == "mp4")
    assert clip.sound is None or clip.sound.seconds == pytest.approx(2.0, abs=0.15)


def test_a_long_video_has_no_more_frames_than_allowed_and_large_ones_are_scaled_down() -> None:
    clip = decode_video(video_file(100, 10, size=(128, 64)), LIMITS)
    assert clip.frames.shape == (8, 22, 45, 3)
    assert clip.fps == pytest.approx(0.8)


def test_a_video_over_the_limit_is_refused() -> None:
    with pytest.raises(UnreadableMediaError, match="longer than the limit of 1 s"):
        decode_video(video_file(20, 10), VideoLimits(8, 1024, seconds=1, timeout_s=10))


DECODERS: dict[str, tuple[Callable[[bytes], Any], bytes]] = {
    "png": (lambda data: decode_image(data, PIXELS), image_file()),
    "jpeg": (lambda data: decode_image(data, PIXELS), image_file(format="JPEG")),
    "webp": (lambda data: decode_image(data, PIXELS), image_file(format="WEBP")),
    "wav": (lambda data: decode_sound(data, 10, 10), audio_file(tone(4000))),
    "mp3": (lambda data: decode_sound(data, 10, 10), audio_file(tone(4000), "mp3")),
    "mp4": (lambda data: decode_video(data, LIMITS), video_file(5, 10)),
}


@pytest.mark.case("runtime:L25")
@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize(
    "data", [b"", b"\0" * 64, b"hello", HLS, CONCAT], ids=["empty", "zeros", "text", "hls", "concat"]
)
def test_what_is_no_media_is_refused_and_never_read_as_a_list_of_other_files(kind: str, data: bytes) -> None:
    decode, _ = DECODERS[kind]
    with pytest.raises(UnreadableMediaError):
        decode(data)


@pytest.mark.case("runtime:L25")
@pytest.mark.parametrize("kind", DECODERS)
def test_damaged_files_are_refused_or_read_but_never_break_the_process(kind: str) -> None:
    decode, whole = DECODERS[kind]
    chance = random.Random(kind)
    for _ in range(40):
        damaged = bytearray(whole[: chance.randrange(1, len(whole) + 1)])
        for _ in range(chance.randrange(4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            decode(bytes(damaged))
        except UnreadableMediaError as exc:
            assert len(str(exc)) < 200


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(UnreadableMediaError, match="it holds no audio"):
        decode_sound(video_file(3, 10), 10, 10)
    with pytest.raises(UnreadableMediaError, match="it holds no video"):
        decode_video(audio_file(tone(1000)), LIMITS)

"""Images, sound and video in chats: from wherever a client may have them, decoded as the file says, or refused."""

import hashlib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from httpx2 import Client
from openai import OpenAI

from omni_contract.wire.payload import Array
from omni_runtime.media.decode_image import decode_image
from omni_runtime.media.decode_sound import decode_sound
from omni_runtime.media.decode_video import decode_video
from omni_runtime.media.values import VideoLimits
from tests.api.test_wrong_requests import error_of
from tests.support.fake_omni import MODEL
from tests.support.media_files import audio_file, data_url, image_file, tone, video_file
from tests.support.model_processes import ModelProcesses

IMAGE, SOUND, VIDEO = image_file(), audio_file(tone(2000)), video_file(10, 10, sound=tone(16_000))
LIMITS = VideoLimits(frames=32, frame_pixels=448 * 448, seconds=600, timeout_s=30)
CONTENT = "messages[0].content[0]"


def named(kind: str, array: Array) -> str:
    """What the fake thinker says of an array."""
    return f"{kind}:{'x'.join(map(str, array.shape))}:{hashlib.sha256(array.data).hexdigest()[:8]}"


def words_of_image() -> str:
    return named("image", decode_image(IMAGE, 1000))


def words_of_sound() -> str:
    return f"{named('audio', decode_sound(SOUND, 10, 10).samples)} sample_rate=16000"


def words_of_video() -> str:
    clip = decode_video(VIDEO, LIMITS)
    assert clip.sound is not None
    return f"{named('audio', clip.sound.samples)} {named('frames', clip.frames)} sample_rate=16000 fps=2"


def part(kind: str, url: str) -> dict[str, Any]:
    return {"type": kind, kind: {"url": url}}


def told(talker: OpenAI, *parts: dict[str, Any]) -> str:
    answer: Any = talker.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": list(parts)}],
        modalities=["text"],
        seed=0,  # type: ignore
    )
    return str(answer.choices[0].message.content)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on this machine that has the files."""
    folder = tmp_path_factory.mktemp("site")
    for name, data in (("a.png", IMAGE), ("a.wav", SOUND), ("a.mp4", VIDEO), ("big.png", b"x" * 100_001)):
        (folder / name).write_bytes(data)
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def http(talking_url: str) -> Client:
    return Client(base_url=talking_url, timeout=30, trust_env=False)


@pytest.mark.parametrize(
    ("kind", "file", "data", "words"),
    [
        ("image_url", "a.png", IMAGE, words_of_image),
        ("audio_url", "a.wav", SOUND, words_of_sound),
        ("video_url", "a.mp4", VIDEO, words_of_video),
    ],
)
def test_media_are_read_from_data_urls_links_and_folders(
    talker: OpenAI, site: str, media_folder: Path, kind: str, file: str, data: bytes, words: Any
) -> None:
    (media_folder / file).write_bytes(data)
    for url in (data_url(data), f"{site}/{file}", f"file://{media_folder}/{file}"):
        assert told(talker, part(kind, url)).startswith(words())


def test_input_audio_is_the_official_way_to_send_sound(talker: OpenAI) -> None:
    _, _, data = data_url(SOUND).partition(",")
    assert told(talker, {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}).startswith(
        words_of_sound()
    )


@pytest.mark.case("runtime:K13")
def test_text_and_media_of_all_kinds_keep_their_order_within_a_message(talker: OpenAI) -> None:
    parts = [
        part("video_url", data_url(VIDEO)),
        {"type": "text", "text": "and"},
        part("image_url", data_url(IMAGE)),
        part("audio_url", data_url(SOUND)),
    ]
    assert told(talker, *parts).startswith(f"{words_of_video()} and {words_of_image()} {words_of_sound()}")


def asked(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}], "modalities": ["text"]}


@pytest.mark.case("runtime:L25")
@pytest.mark.parametrize(
    ("kind", "url", "words"),
    [
        ("image_url", data_url(IMAGE[:40]), "cannot be read as an image"),
        ("image_url", data_url(SOUND), "cannot be read as an image"),
        ("image_url", data_url(image_file((3000, 3000))), "9000000 pixels are more than this model's limit of 4194304"),
        ("image_url", "data:image/png;base64,@@", "no valid base64"),
        ("image_url", "ftp://example.org/a.png", "use an http(s) link or a data URL"),
        ("image_url", "file:///etc/passwd", "no file below a folder"),
        ("audio_url", data_url(IMAGE), "cannot be read as audio"),
        ("audio_url", data_url(b"#EXTM3U\nfile:///etc/passwd\n"), "cannot be read as audio"),
        ("video_url", data_url(VIDEO[:200]), "cannot be read as video"),
        ("video_url", data_url(SOUND), "it holds no video"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_media_that_cannot_be_read_are_refused_by_the_part_they_are_in(
    http: Client, kind: str, url: str, words: str
) -> None:
    error = error_of(http.post("/v1/chat/completions", json=asked(part(kind, url))), 400)
    assert (error["param"], error["code"]) == (f"{CONTENT}.{kind}", "invalid_request")
    assert words in error["message"] and "aGVsbG8" not in error["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_file_over_the_limit_is_too_large_streamed_or_not(http: Client, site: str, stream: bool) -> None:
    body = asked(part("image_url", f"{site}/big.png")) | {"stream": stream}
    error = error_of(http.post("/v1/chat/completions", json=body), 413)
    assert (error["param"], error["code"]) == (f"{CONTENT}.image_url", "payload_too_large")


def test_the_part_at_fault_is_named_among_others(http: Client) -> None:
    parts = [{"type": "text", "text": "look"}, part("image_url", data_url(IMAGE)), part("image_url", data_url(b"no"))]
    assert error_of(http.post("/v1/chat/completions", json=asked(*parts)), 400)["param"] == (
        "messages[0].content[2].image_url"
    )


@pytest.mark.case("runtime:Q2")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "[::ffff:127.0.0.1]"])
def test_by_default_nothing_of_this_machine_or_its_network_is_fetched(talking: ModelProcesses, host: str) -> None:
    closed = Client(base_url=talking.urls[1], timeout=30, trust_env=False)
    port = talking.urls[0].rpartition(":")[2]
    answer = closed.post("/v1/chat/completions", json=asked(part("image_url", f"http://{host}:{port}/livez")))
    assert "not public" in error_of(answer, 400)["message"]


def test_by_default_no_file_is_read(talking: ModelProcesses, media_folder: Path) -> None:
    (media_folder / "a.png").write_bytes(IMAGE)
    closed = Client(base_url=talking.urls[1], timeout=30, trust_env=False)
    answer = closed.post("/v1/chat/completions", json=asked(part("image_url", f"file://{media_folder}/a.png")))
    assert "no file below a folder" in error_of(answer, 400)["message"]

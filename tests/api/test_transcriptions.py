"""POST /v1/audio/transcriptions and /v1/audio/translations as the official SDK uses them."""

import json
from typing import Any

import openai as sdk
import pytest
from httpx2 import Client
from openai import AsyncOpenAI, OpenAI

from omni_contract.wire.payload import Array
from omni_runtime.engines.fake_answers import words_of
from omni_runtime.media.decode_sound import decode_sound
from omni_runtime.media.values import Sound
from tests.api.test_wrong_requests import error_of
from tests.support.fake_chain import MODEL as PAINTER
from tests.support.fake_omni import MODEL, SPEECH_MODEL, STEPS
from tests.support.media_files import RATE, audio_file, decoded, tone, video_file

PATH = "/v1/audio/transcriptions"
SOUND = audio_file(tone(RATE // 4))
FILE = ("fox.wav", SOUND, "audio/wav")
TASK = "Transcribe the audio into text. Answer with nothing else."


def expected_text(data: bytes = SOUND, task: str = TASK, seed: int = 0, tokens: int = STEPS) -> str:
    """The fake thinker says what it was told: what it hears, and what it is to do with it."""
    sound = decode_sound(data, 600, 60, RATE)
    audio = {"type": "audio", "audio": sound.samples, "sample_rate": sound.sample_rate}
    words = words_of({"messages": [{"content": [audio, {"type": "text", "text": task}]}]})
    return "".join(f"{words[(seed + number) % len(words)]} " for number in range(tokens))


def ask(client: OpenAI, **fields: Any) -> Any:
    return client.audio.transcriptions.create(**{"model": MODEL, "file": FILE, "extra_body": {"seed": 0}, **fields})


@pytest.mark.parametrize("format", ["wav", "mp3", "flac", "opus", "aac"])
def test_a_file_of_any_format_reaches_the_thinker_with_the_task(talker: OpenAI, format: Any) -> None:
    data = audio_file(tone(RATE // 4), format)
    answer = ask(talker, file=(f"fox.{format}", data))
    assert (answer.text, answer.finish_reason) == (expected_text(data), "stop")
    assert (answer.usage.type, answer.usage.output_tokens) == ("tokens", STEPS)
    assert answer.usage.total_tokens == answer.usage.input_tokens + STEPS
    assert answer.usage.input_seconds == pytest.approx(decoded(data).seconds, abs=1e-6)


def test_sound_of_a_higher_rate_comes_down_to_that_of_speech(talker: OpenAI) -> None:
    heard = ask(talker, file=("fox.wav", audio_file(tone(48_000, rate=48_000))))
    assert "audio:16000:" in heard.text and "sample_rate=16000" in heard.text
    assert heard.usage.input_seconds == 1.0


def test_the_sound_of_a_video_is_heard(talker: OpenAI) -> None:
    film = video_file(sound=tone(RATE))
    assert ask(talker, file=("fox.mp4", film)).text == expected_text(film)


def test_the_language_and_what_went_before_are_told_to_the_model(talker: OpenAI) -> None:
    task = (
        "Transcribe the German audio into text. Answer with nothing else.\n"
        "What goes before, and how names are written: Herr Fuchs"
    )
    assert ask(talker, language="DE", prompt="Herr Fuchs").text == expected_text(task=task)


def test_a_translation_is_into_english(talker: OpenAI) -> None:
    answer = talker.audio.translations.create(model=MODEL, file=FILE, extra_body={"seed": 0})
    task = "Translate the speech in the audio into English text. Answer with nothing else."
    assert answer.text == expected_text(task=task)


def test_the_text_alone_comes_as_plain_text(talker: OpenAI) -> None:
    answer: Any = talker.audio.transcriptions.with_raw_response.create(
        model=MODEL, file=FILE, response_format="text", extra_body={"seed": 0}
    )
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.parse() == expected_text()
    assert answer.headers["x-omni-replicas"] == "thinker=thinker"


def test_a_stream_gives_the_text_in_deltas_and_whole_at_its_end(talker: OpenAI) -> None:
    *deltas, done = ask(talker, stream=True)
    assert {event.type for event in deltas} == {"transcript.text.delta"} and len(deltas) == STEPS
    assert done.type == "transcript.text.done"
    assert "".join(event.delta for event in deltas) == done.text == expected_text()
    assert done.usage.model_dump() == ask(talker).usage.model_dump()


def test_logprobs_come_for_each_token_whole_and_streamed(talker: OpenAI) -> None:
    whole = ask(talker, include=["logprobs"]).logprobs
    *deltas, done = ask(talker, include=["logprobs"], stream=True)
    assert "".join(one.token for one in whole) == expected_text()
    assert [one.token for event in deltas for one in event.logprobs] == [one.token for one in done.logprobs]
    assert ask(talker).logprobs is None


async def test_the_async_client_gets_the_same(talking_url: str) -> None:
    async with AsyncOpenAI(base_url=f"{talking_url}/v1", api_key="none", max_retries=0) as client:
        answer = await client.audio.transcriptions.create(model=MODEL, file=FILE, extra_body={"seed": 0})
        stream = await client.audio.transcriptions.create(model=MODEL, file=FILE, stream=True, extra_body={"seed": 0})
        events = [event async for event in stream]
    assert answer.text == events[-1].text == expected_text()  # type: ignore[union-attr]


def test_the_seed_is_reported_and_a_cut_is_told(talker: OpenAI) -> None:
    raw = talker.audio.transcriptions.with_raw_response.create(model=MODEL, file=FILE)
    seed = int(raw.headers["x-omni-seed"])
    cut = ask(talker, extra_body={"seed": seed, "max_completion_tokens": 3})
    assert (cut.text, cut.finish_reason) == (expected_text(seed=seed, tokens=3), "length")


WRONG_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"language": "klingon"}, "language", "send an ISO 639-1 code (ar, bg"),
    ({"response_format": "verbose_json"}, "response_format", "use json or text"),
    ({"response_format": "srt"}, "response_format", "when each word is said"),
    ({"response_format": "xml"}, "response_format", "'json' or 'text'"),
    ({"temperature": "hot"}, "temperature", "valid number"),
    ({"temperature": "1.1"}, "temperature", "less than or equal to 1"),
    ({"stream": "perhaps"}, "stream", "valid boolean"),
    ({"seed": "-1"}, "seed", "greater than or equal to 0"),
    ({"prompt": "x" * 4097}, "prompt", "at most 4096 characters"),
    ({"include[]": "words"}, "include[0]", "'logprobs'"),
    ({"timestamp_granularities[]": "word"}, "timestamp_granularities", "not supported"),
    ({"chunking_strategy": "auto"}, "chunking_strategy", "heard at once"),
    ({"chunking_strategy[type]": "server_vad"}, "chunking_strategy", "heard at once"),
    ({"known_speaker_names[]": "fox"}, "known_speaker_names", "not told apart"),
    ({"languages[]": "en"}, "languages", "as language"),
    ({"langauge": "en"}, "langauge", 'did you mean "language"?'),
]


@pytest.fixture(scope="module")
def http(talking_url: str) -> Client:
    return Client(base_url=talking_url, timeout=30, trust_env=False)


@pytest.mark.case("runtime:A10")
@pytest.mark.parametrize(("fields", "param", "words"), WRONG_FIELDS, ids=lambda value: str(value)[:40])
def test_a_wrong_field_is_refused_by_name(http: Client, fields: dict[str, Any], param: str, words: str) -> None:
    error = error_of(http.post(PATH, data={"model": MODEL, **fields}, files={"file": FILE}), 400)
    assert (error["param"], error["code"], error["type"]) == (param, "invalid_request", "invalid_request_error")
    assert words in error["message"]


@pytest.mark.case("runtime:L25", "runtime:Q2")
@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([], "file is required"),
        ([("file", ("a.wav", b""))], "at least 1"),
        ([("file", ("a.wav", b"no sound at all"))], "cannot be read as audio"),
        ([("file", ("a.wav", SOUND[:30]))], "file: "),
        ([("file", ("a.m3u8", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n"))], "cannot be read as audio"),
        ([("file", FILE), ("file", FILE)], "got 2 files"),
    ],
)
def test_what_is_no_sound_is_refused(http: Client, files: Any, words: str) -> None:
    # An empty part makes the body a form even without a file.
    error = error_of(http.post(PATH, files=[("model", (None, MODEL)), *files]), 400)
    assert error["param"] == "file" and words in error["message"]


def test_a_file_that_is_sent_as_a_text_is_refused(http: Client) -> None:
    error = error_of(http.post(PATH, files=[("file", (None, "https://example.invalid/fox.wav"))]), 400)
    assert (error["param"], error["message"]) == ("file", "file: send one file with its name, got a text")


@pytest.mark.parametrize(
    ("content_type", "status"),
    [("application/json", 415), ("", 415), ("multipart/form-data", 400), ("multipart/form-data; boundary=x", 400)],
)
def test_a_body_that_is_no_form_is_refused(http: Client, content_type: str, status: int) -> None:
    body = json.dumps({"model": MODEL}).encode()
    error_of(http.post(PATH, content=body, headers={"content-type": content_type}), status)


def test_a_file_that_is_too_large_is_refused_by_name(http: Client) -> None:
    error = error_of(http.post(PATH, files={"file": ("a.wav", bytes(100_001))}), 413)
    assert (error["param"], error["code"]) == ("file", "payload_too_large")
    assert "100,000 bytes" in error["message"]


def test_minutes_of_sound_are_heard(http: Client) -> None:
    samples = 300 * RATE
    silence = Sound(Array("float32", (samples,), memoryview(bytes(4 * samples))), RATE)
    answer = http.post(PATH, data={"model": MODEL}, files={"file": ("a.flac", audio_file(silence, "flac"))})
    assert answer.status_code == 200 and answer.json()["usage"]["type"] == "tokens"


def test_models_that_write_nothing_or_hear_nothing_say_so(openai: OpenAI, reader: OpenAI) -> None:
    for client, model in ((openai, PAINTER), (reader, SPEECH_MODEL)):
        with pytest.raises(sdk.BadRequestError, match="makes no text") as caught:
            client.audio.transcriptions.create(model=model, file=FILE)
        assert caught.value.param == "model"


def test_another_model_is_not_found(talker: OpenAI) -> None:
    with pytest.raises(sdk.NotFoundError) as caught:
        talker.audio.transcriptions.create(model="whisper-1", file=FILE)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")

"""POST /v1/audio/speech and GET /v1/audio/voices as the official SDK uses them."""

import asyncio
import base64
import json
import signal
from array import array
from pathlib import Path
from typing import Any

import httpx2
import pytest
from httpx2 import Client
from openai import AsyncOpenAI, OpenAI

from omni_contract.wire.payload import Array
from omni_runtime.engines.fake_answers import SAMPLE_RATE, SAMPLES_PER_ITEM
from omni_runtime.media.values import Sound
from tests.support.chat_client import WAV_HEADER_BYTES, expected_pcm
from tests.support.fake_omni import SPEECH_MODEL, SPEECH_STEPS, TALKER, VOCODER, fake_speech
from tests.support.media_files import data_url, decoded, samples_of
from tests.support.model_processes import ModelProcesses, model_processes
from tests.support.worker_stats import holds_nothing, stats_when

TEXT = "The quick brown fox."
SAMPLES = SPEECH_STEPS * SAMPLES_PER_ITEM
PCM = expected_pcm(SPEECH_STEPS)
CONTENT_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
MOST_PADDING = {"mp3": 2304, "aac": 3072}
"""Samples: streamed, these formats end with a whole frame, and have no place to say how much of it is sound."""


def asked(**fields: Any) -> dict[str, Any]:
    return {"model": SPEECH_MODEL, "voice": "vivian", "input": TEXT, **fields}


def samples_in(data: bytes, format: str) -> int:
    """At the model's rate, decoded to the last packet."""
    if format == "pcm":
        return len(data) // 2
    sound = decoded(data)
    return sound.samples.shape[0] * SAMPLE_RATE // sound.sample_rate


@pytest.mark.case("runtime:A16", "runtime:A20")
@pytest.mark.parametrize("format", CONTENT_TYPES)
def test_every_format_holds_every_sample(reader: OpenAI, format: Any) -> None:
    answer = reader.audio.speech.create(**asked(response_format=format))
    assert answer.response.headers["content-type"] == CONTENT_TYPES[format]
    assert 0 <= samples_in(answer.content, format) - SAMPLES <= MOST_PADDING.get(format, 0)


@pytest.mark.case("runtime:S7")
@pytest.mark.parametrize("format", CONTENT_TYPES)
def test_no_format_begins_with_silence(reader: OpenAI, format: Any) -> None:
    """The fake voice begins at once, so that any silence is the encoder's; a streamed MP3 or AAC cannot say so."""
    data = reader.audio.speech.create(**asked(response_format=format)).content
    sound = Sound(pcm_samples(data), SAMPLE_RATE) if format == "pcm" else decoded(data)
    loud = next(at for at, sample in enumerate(samples_of(sound)) if abs(sample) > 0.05)
    assert loud / sound.sample_rate < (0.06 if format in MOST_PADDING else 0.005)


def pcm_samples(data: bytes) -> Array:
    floats = array("f", (sample / 32_768 for sample in array("h", data)))
    return Array("float32", (len(floats),), memoryview(floats).cast("B"))


def test_mp3_is_what_comes_if_nothing_is_said(reader: OpenAI) -> None:
    assert reader.audio.speech.create(**asked()).response.headers["content-type"] == "audio/mpeg"


@pytest.mark.case("runtime:A17", "runtime:A21")
@pytest.mark.parametrize("format", CONTENT_TYPES)
def test_every_format_streams(reader: OpenAI, format: Any, tmp_path: Path) -> None:
    with reader.audio.speech.with_streaming_response.create(**asked(response_format=format)) as answer:
        assert "content-length" not in answer.headers
        pieces = list(answer.iter_bytes())
    assert len(pieces) > 2
    assert b"".join(pieces) == reader.audio.speech.create(**asked(response_format=format)).content
    with reader.audio.speech.with_streaming_response.create(**asked(response_format=format)) as answer:
        answer.stream_to_file(tmp_path / "speech")
    assert (tmp_path / "speech").read_bytes() == b"".join(pieces)


@pytest.mark.case("runtime:A21")
@pytest.mark.parametrize("format", CONTENT_TYPES)
def test_events_hold_the_same_file_and_end_with_usage(reading_url: str, reader: OpenAI, format: str) -> None:
    body = asked(response_format=format, stream_format="sse")
    with Client(base_url=reading_url, trust_env=False) as http:
        text = http.post("/v1/audio/speech", json=body).text
    events = [json.loads(event.partition("data: ")[2]) for event in text.split("\n\n") if event]
    *deltas, done = events
    assert {event["type"] for event in deltas} == {"speech.audio.delta"} and len(deltas) > 2
    data = b"".join(base64.b64decode(event["audio"]) for event in deltas)
    assert data == reader.audio.speech.create(**asked(response_format=format)).content
    assert done["type"] == "speech.audio.done"
    usage = done["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (4, SPEECH_STEPS)
    assert usage["total_tokens"] == 4 + SPEECH_STEPS
    assert usage["audio_seconds"] == pytest.approx(SAMPLES / SAMPLE_RATE)


@pytest.mark.case("runtime:A19", "runtime:S8")
def test_a_streamed_wav_has_one_header_without_a_length_and_a_whole_one_says_it(reader: OpenAI) -> None:
    streamed = reader.audio.speech.create(**asked(response_format="wav")).content
    whole = reader.audio.speech.create(**asked(response_format="wav", extra_body={"stream": False}))
    assert streamed[:8] == b"RIFF\xff\xff\xff\xff" and streamed[40:44] == b"\xff\xff\xff\xff"
    assert int.from_bytes(whole.content[40:44], "little") == len(PCM)
    assert int(whole.response.headers["content-length"]) == WAV_HEADER_BYTES + len(PCM)
    assert streamed[WAV_HEADER_BYTES:] == whole.content[WAV_HEADER_BYTES:] == PCM


def test_a_whole_mp3_has_not_one_sample_too_many(reader: OpenAI) -> None:
    whole = reader.audio.speech.create(**asked(extra_body={"stream": False})).content
    assert samples_in(whole, "mp3") == SAMPLES


@pytest.mark.parametrize("speed", [0.25, 0.5, 2.0, 4.0])
def test_speed_changes_how_long_it_takes(reader: OpenAI, speed: float) -> None:
    data = reader.audio.speech.create(**asked(response_format="pcm", speed=speed)).content
    assert samples_in(data, "pcm") == pytest.approx(SAMPLES / speed, rel=0.02, abs=0.03 * SAMPLE_RATE)


def test_raw_samples_come_with_their_rate_and_every_answer_with_its_seed(reader: OpenAI) -> None:
    headers = reader.audio.speech.create(**asked(response_format="pcm", extra_body={"seed": 7})).response.headers
    assert (headers["x-omni-sample-rate"], headers["x-omni-seed"]) == (str(SAMPLE_RATE), "7")


def test_every_field_of_models_with_voices_of_their_own_is_taken(reader: OpenAI) -> None:
    clip = data_url(reader.audio.speech.create(**asked(response_format="wav")).content)
    for extra in (
        {"task_type": "CustomVoice", "language": "English", "max_new_tokens": 3},
        {"task_type": "VoiceDesign"},
        {"task_type": "Base", "ref_audio": clip, "ref_text": TEXT},
        {"ref_audio": clip, "x_vector_only_mode": True},
        {"sampling_params_list": [{"max_tokens": 3}, {}], "priority": 1},
    ):
        answer = reader.audio.speech.create(
            **asked(response_format="pcm", instructions="a calm, low voice", extra_body=extra)
        )
        few = "max_new_tokens" in extra or "sampling_params_list" in extra
        assert answer.content == (expected_pcm(3) if few else PCM)


def test_a_voice_may_be_named_as_the_sdk_names_custom_ones_and_in_any_case(reader: OpenAI) -> None:
    assert reader.audio.speech.create(**asked(voice={"id": "ryan"}, response_format="pcm")).content == PCM
    assert reader.audio.speech.create(**asked(voice="Ryan", response_format="pcm")).content == PCM


def test_the_voices_are_listed(reading_url: str, url: str) -> None:
    assert httpx2.get(f"{reading_url}/v1/audio/voices", trust_env=False).json() == {"voices": ["vivian", "ryan"]}
    assert httpx2.get(f"{url}/v1/audio/voices", trust_env=False).json() == {"voices": []}


@pytest.mark.case("runtime:S20", "runtime:L30")
@pytest.mark.parametrize("clients", [5, 16, 64])
async def test_many_speak_at_once_and_each_is_heard_to_the_end(reading_url: str, clients: int) -> None:
    async with AsyncOpenAI(base_url=f"{reading_url}/v1", api_key="none", max_retries=0, timeout=60) as openai:

        async def spoken() -> bytes:
            async with openai.audio.speech.with_streaming_response.create(**asked(response_format="pcm")) as answer:
                return b"".join([piece async for piece in answer.iter_bytes()])

        answers = await asyncio.gather(*(spoken() for _ in range(clients)))
    assert all(answer == PCM for answer in answers)


@pytest.mark.case("runtime:B7")
@pytest.mark.parametrize("format", ["mp3", "opus", "aac", "flac"])
def test_the_same_request_gives_the_same_bytes_every_time(reader: OpenAI, format: Any) -> None:
    short = asked(response_format=format, extra_body={"seed": 5, "max_new_tokens": 5})
    assert len({reader.audio.speech.create(**short).content for _ in range(10)}) == 1


@pytest.mark.case("runtime:S11")
def test_a_long_text_reaches_the_model_whole(reading_url: str) -> None:
    text = " ".join(f"word{number}" for number in range(1500))
    assert len(text) > 10_000
    with Client(base_url=reading_url, trust_env=False) as http:
        answer = http.post("/v1/audio/speech", json=asked(input=text, stream_format="sse", response_format="pcm"))
    assert '"input_tokens":1500' in answer.text


@pytest.mark.case("runtime:C1", "runtime:L30")
async def test_a_client_that_leaves_at_any_moment_ends_the_work_on_every_stage(reading: ModelProcesses) -> None:
    async with AsyncOpenAI(base_url=f"{reading.urls[0]}/v1", api_key="none", max_retries=0, timeout=60) as openai:
        for pieces in (0, 1, 3):
            async with openai.audio.speech.with_streaming_response.create(**asked(response_format="pcm")) as answer:
                stream = answer.iter_bytes()
                for _ in range(pieces):
                    await anext(stream)
        for stage in (TALKER, VOCODER):
            await stats_when(reading.plans[stage].health, holds_nothing, within_s=10)
        whole = await openai.audio.speech.create(**asked(response_format="pcm"))
        assert whole.content == PCM


async def test_speech_that_breaks_off_does_not_look_whole(tmp_path: Path) -> None:
    slow = fake_speech({TALKER: {"steps": 200, "delay_seconds": 0.02}})
    with model_processes(slow, tmp_path) as processes:
        await processes.start()
        with Client(base_url=processes.urls[0], trust_env=False, timeout=30) as http:
            for fields in ({"response_format": "pcm"}, {"response_format": "pcm", "stream_format": "sse"}):
                with http.stream("POST", "/v1/audio/speech", json=asked(**fields)) as answer:
                    pieces = answer.iter_raw()
                    next(pieces)
                    processes.signal(VOCODER, signal.SIGKILL)
                    if "stream_format" in fields:
                        assert '"code":"stage_unavailable"' in b"".join(pieces).decode()
                    else:
                        with pytest.raises(httpx2.RemoteProtocolError):
                            list(pieces)
                await processes.wait(VOCODER, 10)
                await processes.start(VOCODER)
        assert "broke off" in processes.log("frontend-0") and "defect" not in processes.log("frontend-0")

"""Qwen3-TTS behind `omni serve`: over the official SDK, its speech is that of the qwen-tts package."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import numpy
import pytest
from openai import BadRequestError, OpenAI

from tests.layout.source import CHECKOUT
from tests.support.media_files import decoded
from tests.support.qwen_tts import Judged, judged
from tests.support.serve_process import Serve

SAMPLES_PER_FRAME, SAMPLE_RATE = 1920, 24_000
FRAMES = 40
SMALLEST_STEP = 1
"""Of sound in 16 bits: rounding may fall to either side."""
GREEDY = [{"temperature": 0, "subtalker_temperature": 0}, {}]
REQUESTS: list[dict[str, Any]] = [
    {"text": "hello world", "speaker": "vivian", "seed": 0, "samples": False},
    {"text": "over the lazy dog", "speaker": "eric", "language": "Chinese", "seed": 1, "samples": False},
    {"text": "the quick brown fox", "speaker": "ryan", "instruct": "Describe the color", "seed": 7, "samples": True},
]
VOICES = ["vivian", "aiden", "dylan", "eric", "ono_anna", "ryan", "serena", "sohee", "uncle_fu"]
FORMATS = ("mp3", "opus", "aac", "flac", "wav", "pcm")
MOST_PADDING = {"mp3": 2304, "aac": 3072}
"""Samples: streamed, these formats end with a whole frame, and have no place to say how much of it is sound."""


@pytest.fixture(scope="module")
def expected(models: Path) -> list[Judged]:
    return judged(models / "qwen3-tts", [{**request, "frames": FRAMES} for request in REQUESTS])


@pytest.fixture(scope="module")
def url(served: Callable[..., Serve]) -> str:
    return served(CHECKOUT / "examples" / "tiny-qwen3-tts.yaml").url()


@pytest.fixture(scope="module")
def client(url: str) -> OpenAI:
    return OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def asked(request: dict[str, Any], format: str = "pcm", **extra: Any) -> dict[str, Any]:
    own = {} if request["samples"] else {"sampling_params_list": GREEDY}
    if "language" in request:
        own["language"] = request["language"]
    fields = {"instructions": request["instruct"]} if "instruct" in request else {}
    return {
        "model": "tiny-qwen3-tts",
        "input": request["text"],
        "voice": request["speaker"],
        "response_format": format,
        **fields,
        "extra_body": {"max_new_tokens": FRAMES, "seed": request["seed"], **own, **extra},
    }


def samples(pcm: bytes) -> Any:
    return numpy.frombuffer(pcm, dtype=numpy.int16).astype(float)


def spoken(client: OpenAI, request: dict[str, Any], **extra: Any) -> Any:
    return samples(client.audio.speech.create(**asked(request, **extra)).content)


def test_speech_is_that_of_the_package_for_one_and_for_several_at_once(client: OpenAI, expected: list[Judged]) -> None:
    with ThreadPoolExecutor() as clients:
        several = list(clients.map(lambda request: spoken(client, request), REQUESTS))
    for ours, theirs in zip([spoken(client, REQUESTS[0]), *several], [expected[0], *expected], strict=True):
        assert len(ours) == len(theirs.sound)
        assert numpy.abs(ours - numpy.round(theirs.sound * 32767)).max() <= SMALLEST_STEP
        assert numpy.abs(ours).max() > 1000


def test_streamed_speech_comes_piece_by_piece_and_is_the_whole_one(client: OpenAI) -> None:
    whole = client.audio.speech.create(**asked(REQUESTS[0], stream=False)).content
    with client.audio.speech.with_streaming_response.create(**asked(REQUESTS[0])) as answer:
        pieces = list(answer.iter_bytes())
    assert b"".join(pieces) == whole
    assert len(pieces) > 1
    assert len(pieces[0]) < len(whole) / 2, "sound leaves before all is made"


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_holds_every_sample(client: OpenAI, format: str) -> None:
    data = client.audio.speech.create(**asked(REQUESTS[0], format)).content
    count = len(data) // 2 if format == "pcm" else decoded_samples(data)
    assert 0 <= count - FRAMES * SAMPLES_PER_FRAME <= MOST_PADDING.get(format, 0)


def decoded_samples(data: bytes) -> int:
    sound = decoded(data)
    return sound.samples.shape[0] * SAMPLE_RATE // sound.sample_rate


def test_voices_are_those_of_the_checkpoint_and_differ(client: OpenAI, url: str, models: Path) -> None:
    assert httpx2.get(f"{url}/v1/audio/voices", trust_env=False).json() == {"voices": VOICES}
    config = json.loads((models / "qwen3-tts" / "config.json").read_text())
    assert set(config["talker_config"]["spk_id"]) == set(VOICES)
    one, another = (spoken(client, REQUESTS[0] | {"speaker": voice}) for voice in ("ryan", "Sohee"))
    assert not numpy.array_equal(one, another)


def test_language_and_instructions_change_the_speech(client: OpenAI) -> None:
    plain = spoken(client, REQUESTS[0])
    for changed in ({"language": "Japanese"}, {"instruct": "a quick voice"}):
        assert not numpy.array_equal(spoken(client, REQUESTS[0] | changed), plain)


def test_usage_counts_text_frames_and_seconds(url: str) -> None:
    asking = asked(REQUESTS[0])
    body = asking.pop("extra_body") | asking | {"stream_format": "sse"}
    text = httpx2.post(f"{url}/v1/audio/speech", json=body, trust_env=False, timeout=60).text
    done = json.loads(text.rstrip().rpartition("data: ")[2])
    assert done["type"] == "speech.audio.done"
    usage = done["usage"]
    assert usage["output_tokens"] == FRAMES
    assert usage["input_tokens"] > 8
    assert usage["audio_seconds"] == pytest.approx(FRAMES * SAMPLES_PER_FRAME / SAMPLE_RATE)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"voice": "nobody"}, "voice"),
    ({"instructions": "x" * 501}, "instructions"),
    ({"extra_body": {"language": "Latin"}}, "language"),
    ({"extra_body": {"task_type": "Base"}}, "ref_audio"),
    ({"extra_body": {"task_type": "VoiceDesign"}, "instructions": "a low voice"}, "task_type"),
    ({"extra_body": {"max_new_tokens": 0}}, "max_new_tokens"),
    ({"extra_body": {"sampling_params_list": [{"temperature": -1}, {}]}}, "temperature"),
    ({"extra_body": {"sampling_params_list": [{"subtalker_top_p": 2}, {}]}}, "subtalker_top_p"),
]


@pytest.mark.parametrize(("change", "param"), WRONG, ids=[f"{param}-{row}" for row, (_, param) in enumerate(WRONG)])
def test_a_wrong_value_is_refused_by_the_name_of_its_field(client: OpenAI, change: Any, param: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        client.audio.speech.create(**(asked(REQUESTS[0]) | change))
    assert refused.value.param == param

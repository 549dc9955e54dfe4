"""Qwen2.5-Omni behind `omni serve`, a process for each stage: over the SDK, its speech is that of transformers."""

import base64
import io
import json
import subprocess
import sys
import wave
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam

from tests.layout.source import CHECKOUT
from tests.support.serve_process import serving

REFERENCE = CHECKOUT / "tests" / "models" / "talker_reference.py"
WORDS, FRAMES = 12, 24
TEXTS = ("hello world", "the quick brown fox", "over the lazy dog")
STAGES = [
    {"temperature": 0, "repetition_penalty": 1.0, "max_tokens": WORDS},
    {"temperature": 0, "max_tokens": FRAMES},
    {},
]
ASKED: dict[str, Any] = {
    "model": "tiny-qwen25-omni",
    "modalities": ["text", "audio"],
    "audio": {"format": "wav", "voice": "ethan"},
    "seed": 0,
    "extra_body": {"sampling_params_list": STAGES},
}
SMALLEST_STEP = 1
"""Of sound in 16 bits: rounding may fall to either side."""


@pytest.fixture(scope="module")
def expected(models: Path) -> list[Any]:
    """What transformers says to each text, in 16 bits."""
    requests = [{"text": text, "words": WORDS, "frames": FRAMES, "seed": 0, "samples": False} for text in TEXTS]
    out = models / "expected.npz"
    command = [sys.executable, str(REFERENCE), str(models / "qwen2.5-omni"), str(out)]
    subprocess.run(command, input=json.dumps(requests), text=True, check=True, capture_output=True, timeout=300)
    with numpy.load(out) as made:
        return [numpy.round(made[f"{position}.sound"] * 32767) for position in range(len(TEXTS))]


@pytest.fixture(scope="module")
def client(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    file = str(CHECKOUT / "examples" / "tiny-qwen2.5-omni.yaml")
    with serving(file, "--volume", f"models={models}", folder=tmp_path_factory.mktemp("serve")) as serve:
        yield OpenAI(base_url=f"{serve.url()}/v1", api_key="none", max_retries=0)


def said_by_user(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


def answered(client: OpenAI, text: str) -> ChatCompletion:
    answer = client.chat.completions.create(messages=said_by_user(text), **ASKED)
    assert isinstance(answer, ChatCompletion)
    return answer


def samples(answer: ChatCompletion) -> Any:
    audio = answer.choices[0].message.audio
    assert audio is not None
    with wave.open(io.BytesIO(base64.b64decode(audio.data))) as file:
        assert (file.getframerate(), file.getnchannels()) == (24_000, 1)
        return numpy.frombuffer(file.readframes(file.getnframes()), dtype=numpy.int16).astype(float)


def test_speech_is_that_of_transformers_for_one_and_for_several_at_once(client: OpenAI, expected: list[Any]) -> None:
    with ThreadPoolExecutor() as clients:
        several = list(clients.map(lambda text: samples(answered(client, text)), TEXTS))
    for ours, theirs in zip([samples(answered(client, TEXTS[0])), *several], [expected[0], *expected], strict=True):
        assert ours.shape == theirs.shape
        assert numpy.abs(ours - theirs).max() <= SMALLEST_STEP
        assert numpy.abs(ours).max() > 1000


def test_an_answer_has_text_and_sound_and_counts_both(client: OpenAI) -> None:
    answer = answered(client, TEXTS[0])
    audio = answer.choices[0].message.audio
    assert audio is not None and audio.transcript
    assert answer.usage is not None and answer.usage.completion_tokens_details is not None
    assert answer.usage.completion_tokens_details.audio_tokens == len(samples(answer)) / 480
    assert answer.usage.completion_tokens == WORDS + answer.usage.completion_tokens_details.audio_tokens


def test_streamed_sound_is_that_of_the_whole_answer(client: OpenAI) -> None:
    asked = {**ASKED, "audio": {"format": "pcm16", "voice": "Ethan"}}
    said: list[dict[str, Any]] = []
    for chunk in client.chat.completions.create(messages=said_by_user(TEXTS[1]), stream=True, **asked):
        said += [choice.delta.model_dump().get("audio") or {} for choice in chunk.choices]
    heard = b"".join(base64.b64decode(audio["data"]) for audio in said if audio.get("data"))
    streamed = numpy.frombuffer(heard, dtype=numpy.int16).astype(float)
    assert streamed.tolist() == samples(answered(client, TEXTS[1])).tolist()


def test_text_alone_keeps_the_talker_silent(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny-qwen25-omni", messages=[{"role": "user", "content": "hello"}], modalities=["text"], max_tokens=5
    )
    assert answer.choices[0].message.audio is None
    assert answer.usage is not None and answer.usage.completion_tokens == 5

"""Qwen2.5-Omni behind `omni serve`, a process for each stage: over the SDK, its speech is that of transformers."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest
from openai import OpenAI

from tests.layout.source import CHECKOUT
from tests.support.serve_process import serving
from tests.support.speech_chats import answered, asked, assert_same_sound, in_16_bits, samples, streamed_samples

REFERENCE = CHECKOUT / "tests" / "models" / "talker_reference.py"
WORDS, FRAMES = 12, 24
TEXTS = ("hello world", "the quick brown fox", "over the lazy dog")
STAGES = [
    {"temperature": 0, "repetition_penalty": 1.0, "max_tokens": WORDS},
    {"temperature": 0, "max_tokens": FRAMES},
    {},
]
ASKED = asked("tiny-qwen25-omni", STAGES)


@pytest.fixture(scope="module")
def expected(models: Path) -> list[Any]:
    """What transformers says to each text, in 16 bits."""
    requests = [{"text": text, "words": WORDS, "frames": FRAMES, "seed": 0, "samples": False} for text in TEXTS]
    out = models / "expected.npz"
    command = [sys.executable, str(REFERENCE), str(models / "qwen2.5-omni"), str(out)]
    subprocess.run(command, input=json.dumps(requests), text=True, check=True, capture_output=True, timeout=300)
    with numpy.load(out) as made:
        return [in_16_bits(made[f"{position}.sound"]) for position in range(len(TEXTS))]


@pytest.fixture(scope="module")
def client(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    file = str(CHECKOUT / "examples" / "tiny-qwen2.5-omni.yaml")
    with serving(file, "--volume", f"models={models}", folder=tmp_path_factory.mktemp("serve")) as serve:
        yield OpenAI(base_url=f"{serve.url()}/v1", api_key="none", max_retries=0)


def test_speech_is_that_of_transformers_for_one_and_for_several_at_once(client: OpenAI, expected: list[Any]) -> None:
    with ThreadPoolExecutor() as clients:
        several = list(clients.map(lambda text: samples(answered(client, text, ASKED)), TEXTS))
    alone = samples(answered(client, TEXTS[0], ASKED))
    for ours, theirs in zip([alone, *several], [expected[0], *expected], strict=True):
        assert_same_sound(ours, theirs)


def test_an_answer_has_text_and_sound_and_counts_both(client: OpenAI) -> None:
    answer = answered(client, TEXTS[0], ASKED)
    audio = answer.choices[0].message.audio
    assert audio is not None and audio.transcript
    assert answer.usage is not None and answer.usage.completion_tokens_details is not None
    assert answer.usage.completion_tokens_details.audio_tokens == len(samples(answer)) / 480
    assert answer.usage.completion_tokens == WORDS + answer.usage.completion_tokens_details.audio_tokens


def test_streamed_sound_is_that_of_the_whole_answer(client: OpenAI) -> None:
    whole = samples(answered(client, TEXTS[1], ASKED))
    assert streamed_samples(client, TEXTS[1], ASKED).tolist() == whole.tolist()


def test_text_alone_keeps_the_talker_silent(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny-qwen25-omni", messages=[{"role": "user", "content": "hello"}], modalities=["text"], max_tokens=5
    )
    assert answer.choices[0].message.audio is None
    assert answer.usage is not None and answer.usage.completion_tokens == 5

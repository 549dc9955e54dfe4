"""A checkpoint of Qwen3-TTS that clones, behind `omni serve`: a voice sent as a file over the SDK is the package's."""

import io
import subprocess
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy
import pytest
from openai import BadRequestError, OpenAI

from tests.layout.source import CHECKOUT
from tests.support.media_files import data_url
from tests.support.qwen_tts import Judged, judged
from tests.support.serve_process import OMNI, serving

SMALLEST_STEP = 1
"""Of sound in 16 bits: rounding may fall to either side."""
RATE, FRAMES = 24_000, 30
WORDS = "hello world"
GREEDY = [{"temperature": 0, "subtalker_temperature": 0}, {}]


def hum() -> Any:
    times = numpy.arange(36_000) / RATE
    return numpy.round(9_000 * numpy.sin(2 * numpy.pi * 220 * times) * (1 + numpy.sin(18 * times))).astype(numpy.int16)


def file_of(samples: Any) -> bytes:
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setparams((1, 2, RATE, len(samples), "NONE", ""))
        file.writeframes(samples.tobytes())
    return data.getvalue()


REQUESTS: list[dict[str, Any]] = [{"ref_text": WORDS}, {"x_vector_only_mode": True}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    models = tmp_path_factory.mktemp("models")
    subprocess.run([OMNI, "tiny", "qwen3-tts", models / "qwen3-tts", "--variant", "Base"], check=True)
    return models


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[Judged]:
    common = {
        "text": "the quick brown fox",
        "ref_audio": (hum() / 32768).tolist(),
        "sample_rate": RATE,
        "frames": FRAMES,
        "seed": 0,
        "samples": False,
    }
    return judged(folder / "qwen3-tts", [common | request for request in REQUESTS])


@pytest.fixture(scope="module")
def client(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    file = folder / "model.yaml"
    example = (CHECKOUT / "examples" / "tiny-qwen3-tts.yaml").read_text()
    # It has no voices of its own.
    file.write_text(example + "      output: {modality: audio, voices: []}\n")
    with serving(str(file), "--volume", f"models={folder}", folder=tmp_path_factory.mktemp("serve")) as serve:
        yield OpenAI(base_url=f"{serve.url()}/v1", api_key="none", max_retries=0)


def spoken(client: OpenAI, **extra: Any) -> Any:
    answer = client.audio.speech.create(
        model="tiny-qwen3-tts",
        voice="anybody",
        input="the quick brown fox",
        response_format="pcm",
        extra_body={"ref_audio": data_url(file_of(hum())), "max_new_tokens": FRAMES, **extra},
    )
    return numpy.frombuffer(answer.content, dtype=numpy.int16).astype(float)


def test_a_clone_says_what_the_package_lets_it_say(client: OpenAI, expected: list[Judged]) -> None:
    for request, theirs in zip(REQUESTS, expected, strict=True):
        ours = spoken(client, sampling_params_list=GREEDY, **request)
        assert len(ours) == len(theirs.sound) == FRAMES * 1920
        assert numpy.abs(ours - numpy.round(theirs.sound * 32767)).max() <= SMALLEST_STEP


def test_a_model_without_voices_of_its_own_lists_none(client: OpenAI) -> None:
    assert httpx2.get(f"{client.base_url}audio/voices", trust_env=False).json() == {"voices": []}


@pytest.mark.parametrize(
    ("extra", "param"),
    [
        ({"ref_text": WORDS, "task_type": "CustomVoice", "ref_audio": None}, "ref_text"),
        ({"task_type": "CustomVoice", "ref_audio": None}, "task_type"),
        ({}, "ref_text"),
        ({"ref_text": WORDS, "ref_audio": "data:audio/wav;base64,AAAA"}, "ref_audio"),
    ],
)
def test_what_cannot_be_cloned_is_refused_by_the_name_of_its_field(client: OpenAI, extra: Any, param: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        spoken(client, **extra)
    assert refused.value.param == param

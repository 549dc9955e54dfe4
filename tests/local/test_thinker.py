"""A thinker on vLLM behind `omni serve`: over the SDK, words, pictures and sound get the answer of transformers."""

import base64
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy
import pytest
from openai import BadRequestError, OpenAI
from openai.types.chat import ChatCompletionMessageParam
from PIL import Image
from transformers import AutoTokenizer

from omni_contract.wire.payload import Array
from omni_runtime.media.values import Sound
from tests.layout.source import CHECKOUT
from tests.models import ar_thinker_reference
from tests.support.media_files import RATE, audio_file
from tests.support.serve_process import OMNI, serving

MODEL = "tiny-thinker"
LENGTH = ar_thinker_reference.LENGTH
DICE = numpy.random.default_rng(3)
PICTURE = DICE.integers(0, 255, (56, 84, 3), dtype=numpy.uint8)
SOUND = DICE.integers(-8192, 8192, RATE // 2).astype(numpy.float32) / 32768
"""Of whole 16-bit samples, so that a WAV file holds it exactly."""

CHATS = [
    [{"type": "text", "text": "a red fox"}],
    [{"type": "text", "text": "what is "}, {"type": "image", "name": "picture"}, {"type": "text", "text": "that?"}],
    [{"type": "audio", "name": "sound"}, {"type": "text", "text": "and this?"}],
]


def as_sent(part: dict[str, str]) -> dict[str, Any]:
    """A part of the reference's message as a client of the API sends it."""
    if part["type"] == "image":
        file = io.BytesIO()
        Image.fromarray(PICTURE).save(file, "PNG")
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded(file.getvalue())}"}}
    if part["type"] == "audio":
        sound = Sound(Array("float32", SOUND.shape, memoryview(SOUND).cast("B")), RATE)
        return {"type": "input_audio", "input_audio": {"data": encoded(audio_file(sound)), "format": "wav"}}
    return part


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def message(chat: list[dict[str, str]]) -> list[ChatCompletionMessageParam]:
    return cast(list[ChatCompletionMessageParam], [{"role": "user", "content": [as_sent(part) for part in chat]}])


@pytest.fixture(scope="module")
def thinkers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the claim `models`."""
    folder = tmp_path_factory.mktemp("thinkers")
    subprocess.run([OMNI, "tiny", "qwen2.5-omni", folder / "qwen2.5-omni"], check=True)
    return folder


@pytest.fixture(scope="module")
def expected(thinkers: Path) -> list[str]:
    """What transformers answers, in a process that imports nothing of ours."""
    numpy.savez(thinkers / "media.npz", picture=PICTURE, sound=SOUND)
    asked = json.dumps([[{"role": "user", "content": chat}] for chat in CHATS])
    model, out = thinkers / "qwen2.5-omni", thinkers / "out.npz"
    command = [sys.executable, ar_thinker_reference.__file__, model, thinkers / "media.npz", out]
    subprocess.run(command, input=asked, text=True, timeout=300, check=True)
    tokenizer, made = AutoTokenizer.from_pretrained(model), numpy.load(out)
    tokens = (made[f"tokens.{number}"] for number in range(len(CHATS)))
    return [tokenizer.decode(one, skip_special_tokens=True) for one in tokens]


@pytest.fixture(scope="module")
def client(thinkers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    file = str(CHECKOUT / "examples" / "tiny-thinker.yaml")
    with serving(file, "--volume", f"models={thinkers}", folder=tmp_path_factory.mktemp("serve")) as serve:
        yield OpenAI(base_url=f"{serve.url()}/v1", api_key="none", max_retries=0)


def greedy(**more: Any) -> dict[str, Any]:
    return {"model": MODEL, "temperature": 0, "max_tokens": LENGTH, "extra_body": {"min_tokens": LENGTH, **more}}


@pytest.mark.parametrize("number", range(len(CHATS)))
def test_an_answer_equals_transformers_whole_and_streamed(client: OpenAI, expected: list[str], number: int) -> None:
    whole = client.chat.completions.create(messages=message(CHATS[number]), **greedy())
    streamed = client.chat.completions.create(messages=message(CHATS[number]), stream=True, **greedy())
    assert whole.choices[0].message.content == expected[number]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed if chunk.choices) == expected[number]
    assert whole.usage is not None and whole.usage.completion_tokens == LENGTH


def test_what_the_model_cannot_do_is_told_by_its_field_and_hurts_nobody(client: OpenAI, expected: list[str]) -> None:
    too_long = [{"type": "text", "text": "fox " * 600}]
    with pytest.raises(BadRequestError) as refused:
        client.chat.completions.create(messages=message(too_long), **greedy())
    assert refused.value.param == "messages"
    again = client.chat.completions.create(messages=message(CHATS[0]), **greedy())
    assert again.choices[0].message.content == expected[0]

"""Chats with the thinker of a tiny Qwen2.5-Omni in words, a picture and sound, and what transformers answers."""

import base64
import io
import json
from pathlib import Path
from typing import Any, cast

import numpy
from openai.types.chat import ChatCompletionMessageParam
from PIL import Image

from omni_contract.wire.payload import Array
from omni_runtime.media.values import Sound
from tests.layout.source import CHECKOUT
from tests.support.judges import ask
from tests.support.media_files import RATE, audio_file

JUDGE = CHECKOUT / "tests" / "models" / "ar_thinker_reference.py"
LENGTH = 12
"""The judge's own, too, which is not imported here: it takes torch and transformers along into every level."""
DICE = numpy.random.default_rng(3)
PICTURE = DICE.integers(0, 255, (56, 84, 3), dtype=numpy.uint8)
SOUND = DICE.integers(-8192, 8192, RATE // 2).astype(numpy.float32) / 32768
"""Of whole 16-bit samples, so that a WAV file holds it exactly."""

CHATS = [
    [{"type": "text", "text": "a red fox"}],
    [{"type": "text", "text": "what is "}, {"type": "image", "name": "picture"}, {"type": "text", "text": "that?"}],
    [{"type": "audio", "name": "sound"}, {"type": "text", "text": "and this?"}],
]


def message(chat: list[dict[str, str]]) -> list[ChatCompletionMessageParam]:
    """As a client of the API sends it."""
    return cast(list[ChatCompletionMessageParam], [{"role": "user", "content": [_as_sent(part) for part in chat]}])


def greedy(model: str) -> dict[str, Any]:
    """Arguments of the SDK for an answer of a fixed length."""
    return {"model": model, "temperature": 0, "max_tokens": LENGTH, "extra_body": {"min_tokens": LENGTH}}


def expected_answers(model: Path, folder: Path) -> list[str]:
    """What transformers answers to CHATS, in a process that imports nothing of ours; `folder` is for its files."""
    numpy.savez(folder / "media.npz", picture=PICTURE, sound=SOUND)
    asked = json.dumps([[{"role": "user", "content": chat}] for chat in CHATS])
    ask(JUDGE, [model, folder / "media.npz", folder / "out.npz"], asked)
    from transformers import AutoTokenizer

    tokenizer, made = AutoTokenizer.from_pretrained(model), numpy.load(folder / "out.npz")
    tokens = (made[f"tokens.{number}"] for number in range(len(CHATS)))
    return [tokenizer.decode(one, skip_special_tokens=True) for one in tokens]


def sound_file() -> bytes:
    return audio_file(Sound(Array("float32", SOUND.shape, memoryview(SOUND).cast("B")), RATE))


def _as_sent(part: dict[str, str]) -> dict[str, Any]:
    if part["type"] == "image":
        file = io.BytesIO()
        Image.fromarray(PICTURE).save(file, "PNG")
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_encoded(file.getvalue())}"}}
    if part["type"] == "audio":
        return {"type": "input_audio", "input_audio": {"data": _encoded(sound_file()), "format": "wav"}}
    return part


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()

"""Chats with the fake omni model by the official SDK, and knows what its stages answer."""

import base64
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

from omni_contract.wire.payload import Array
from omni_runtime.engines.fake_answers import SAMPLE_RATE, SAMPLES_PER_ITEM, fake_sound
from tests.support.fake_omni import STEPS

WORDS = "the quick brown fox"
WAV_HEADER_BYTES = 44


def said(text: str = WORDS) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


def expected_text(text: str = WORDS, seed: int = 0, tokens: int = STEPS) -> str:
    """What the fake thinker says: the words it was told, one a step, from the seed-th on."""
    words = text.split()
    return "".join(f"{words[(seed + number) % len(words)]} " for number in range(tokens))


def expected_pcm(items: int = STEPS) -> bytes:
    """What the fake vocoder says, as 16-bit samples."""
    sound = fake_sound(0, items)["audio"]
    assert isinstance(sound, Array)
    samples = array("f", bytes(sound.data))
    return array("h", (round(sample * 32_768) for sample in samples)).tobytes()


EXPECTED_SECONDS = STEPS * SAMPLES_PER_ITEM / SAMPLE_RATE


@dataclass
class Heard:
    """A streamed answer, put together: what each choice said, by its index."""

    text: dict[int, str] = field(default_factory=dict)
    transcript: dict[int, str] = field(default_factory=dict)
    audio: dict[int, bytes] = field(default_factory=dict)
    ends: dict[int, str] = field(default_factory=dict)
    audio_errors: dict[int, Any] = field(default_factory=dict)
    audio_ids: set[str] = field(default_factory=set)
    usage: Any = None
    kinds: list[str] = field(default_factory=list)
    """What came when: "text", "audio", "end"."""


def heard(chunks: Iterable[ChatCompletionChunk]) -> Heard:
    whole = Heard()
    for chunk in chunks:
        take(whole, chunk)
    return whole


def take(whole: Heard, chunk: ChatCompletionChunk) -> None:
    whole.usage = chunk.usage or whole.usage
    for choice in chunk.choices:
        index, delta = choice.index, choice.delta
        whole.text[index] = whole.text.get(index, "") + (delta.content or "")
        if delta.content:
            whole.kinds.append("text")
        if delta.audio is not None:
            whole.audio_ids.add(delta.audio.id or "")
            whole.transcript[index] = whole.transcript.get(index, "") + (delta.audio.transcript or "")
            whole.audio[index] = whole.audio.get(index, b"") + base64.b64decode(delta.audio.data or "")
            whole.kinds += ["audio"] if delta.audio.data else []
        if (error := getattr(delta, "audio_error", None)) is not None:
            whole.audio_errors[index] = error
        if choice.finish_reason is not None:
            whole.ends[index] = choice.finish_reason
            whole.kinds.append("end")

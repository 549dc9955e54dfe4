"""Chats that are answered in text and sound, over the official SDK."""

import base64
import io
import wave
from typing import Any, TypeAlias

import numpy
from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam

Messages: TypeAlias = list[ChatCompletionMessageParam]
Said: TypeAlias = str | Messages
"""What the user says, or the whole conversation."""
SMALLEST_STEP = 1
"""Of sound in 16 bits: rounding may fall to either side."""


def asked(model: str, stages: list[dict[str, Any]]) -> dict[str, Any]:
    """A request for both, as keyword arguments; `stages` is the sampling of each."""
    return {
        "model": model,
        "modalities": ["text", "audio"],
        "audio": {"format": "wav", "voice": "ethan"},
        "seed": 0,
        "extra_body": {"sampling_params_list": stages},
    }


def said_by_user(said: Said) -> Messages:
    return [{"role": "user", "content": said}] if isinstance(said, str) else said


def answered(client: OpenAI, said: Said, request: dict[str, Any]) -> ChatCompletion:
    answer = client.chat.completions.create(messages=said_by_user(said), **request)
    assert isinstance(answer, ChatCompletion)
    return answer


def samples(answer: ChatCompletion) -> Any:
    audio = answer.choices[0].message.audio
    assert audio is not None
    with wave.open(io.BytesIO(base64.b64decode(audio.data))) as file:
        assert (file.getframerate(), file.getnchannels()) == (24_000, 1)
        return numpy.frombuffer(file.readframes(file.getnframes()), dtype=numpy.int16).astype(float)


def streamed_samples(client: OpenAI, said: Said, request: dict[str, Any]) -> Any:
    request = {**request, "audio": {"format": "pcm16", "voice": "Ethan"}}
    told: list[dict[str, Any]] = []
    for chunk in client.chat.completions.create(messages=said_by_user(said), stream=True, **request):
        told += [choice.delta.model_dump().get("audio") or {} for choice in chunk.choices]
    heard = b"".join(base64.b64decode(audio["data"]) for audio in told if audio.get("data"))
    return numpy.frombuffer(heard, dtype=numpy.int16).astype(float)


def in_16_bits(sound: Any) -> Any:
    return numpy.round(sound * 32767)


def assert_same_sound(ours: Any, theirs: Any) -> None:
    assert ours.shape == theirs.shape
    assert numpy.abs(ours - theirs).max() <= SMALLEST_STEP
    assert numpy.abs(ours).max() > 1000

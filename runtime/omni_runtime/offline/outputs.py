"""What `generate` gives: one output for each prompt and modality, in the shape that vLLM-Omni's readers know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy
from PIL import Image

from omni_contract.wire.errors import OmniError
from omni_contract.wire.payload import Array, Payload, Value
from omni_runtime.offline.media import numpy_of
from omni_runtime.offline.prompts import Prompt
from omni_runtime.statistics.request import RequestStats


@dataclass(frozen=True)
class CompletionOutput:
    """Text, with the tokens that it is made of. `finish_reason` is "stop" or "length" at its end."""

    text: str
    token_ids: tuple[int, ...] = ()
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: tuple[Any, ...] = ()


@dataclass(frozen=True)
class RequestOutput:
    """What one modality holds; the fields of the others are empty."""

    outputs: tuple[CompletionOutput, ...] = ()
    images: tuple[Image.Image, ...] = ()
    multimodal_output: Mapping[str, Any] = field(default_factory=dict)
    """Sound as {"audio": float32[samples], "sample_rate": int}, other arrays by their name."""


@dataclass(frozen=True)
class OmniRequestOutput:
    """One modality of the answer to one prompt, or, if it is streamed, the next part of it.

    `prompt_index` is the prompt's place in the call. `metrics` come with the end of the request. Of an output that
    failed, `error` says why; asking for what it holds raises that.
    """

    request_id: str
    prompt_index: int
    prompt: Prompt
    final_output_type: str
    made: RequestOutput = field(default_factory=RequestOutput)
    finished: bool = True
    error: OmniError | None = None
    metrics: RequestStats | None = None

    @property
    def request_output(self) -> list[RequestOutput]:
        """Always one; a list since vLLM-Omni has it so."""
        if self.error is not None:
            raise self.error
        return [self.made]

    @property
    def text(self) -> str:
        return "".join(one.text for one in self.request_output[0].outputs)

    @property
    def images(self) -> tuple[Image.Image, ...]:
        return self.request_output[0].images

    @property
    def audio(self) -> "numpy.ndarray[Any, Any]":
        """float32[samples], one channel; `sample_rate` is that of the model's voice."""
        audio: numpy.ndarray[Any, Any] = self.request_output[0].multimodal_output["audio"]
        return audio

    @property
    def sample_rate(self) -> int:
        return int(self.request_output[0].multimodal_output["sample_rate"])


def made_of(modality: str, items: Sequence[Payload]) -> RequestOutput:
    """Parts of an answer, joined."""
    match modality:
        case "text":
            return RequestOutput(outputs=(_text(items),))
        case "audio":
            return RequestOutput(multimodal_output=_audio(items))
        case "image":
            return RequestOutput(images=tuple(picture for item in items for picture in _pictures(item["image"])))
    return RequestOutput(multimodal_output={key: _plain(value) for item in items for key, value in item.items()})


def _text(items: Sequence[Payload]) -> CompletionOutput:
    reasons: dict[str, Any] = {
        key: item[key] for item in items for key in ("finish_reason", "stop_reason") if key in item
    }
    return CompletionOutput(
        text="".join(str(item["text"]) for item in items),
        token_ids=tuple(token for item in items for token in _list(item.get("token_ids"))),
        logprobs=tuple(one for item in items for one in _list(item.get("logprobs"))),
        **reasons,
    )


def _audio(items: Sequence[Payload]) -> dict[str, Any]:
    sounds = [(numpy_of(audio), item["sample_rate"]) for item in items if isinstance(audio := item.get("audio"), Array)]
    if not sounds:
        return {"audio": numpy.zeros(0, numpy.float32)}
    return {"audio": numpy.concatenate([samples for samples, _ in sounds]), "sample_rate": sounds[-1][1]}


def _pictures(image: Value) -> list[Image.Image]:
    """One, or several if there is a number before rows, columns and colors."""
    assert isinstance(image, Array), "a stage with images as its output gives arrays"
    pixels = numpy_of(image)
    return [Image.fromarray(one) for one in (pixels if pixels.ndim == 4 else [pixels])]


def _list(value: Value) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _plain(value: Value) -> Any:
    return numpy_of(value) if isinstance(value, Array) else value

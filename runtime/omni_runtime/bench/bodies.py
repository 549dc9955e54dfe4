"""Pure: a request of a data set as the JSON that its endpoint takes."""

from typing import Any

from omni_runtime.bench.datasets import Asked
from omni_runtime.bench.settings import Backend, BenchSettings

PART_TYPES = {"image": "image_url", "video": "video_url", "audio": "audio_url"}
SIZE = ("width", "height")


def body_of(asked: Asked, number: int, model: str, settings: BenchSettings) -> dict[str, Any]:
    """What `--extra-body` says lies over the rest."""
    body: dict[str, Any] = {"model": model, **_own(settings.target.backend, asked, number, settings)}
    return {**body, **settings.extra_body}


def _own(backend: Backend, asked: Asked, number: int, settings: BenchSettings) -> dict[str, Any]:
    match backend:
        case "openai-chat-omni":
            message = {"role": "user", "content": _content(asked)}
            return {"messages": [message], **_text_fields(asked, number, settings), **asked.fields}
        case "openai-completions":
            return {"prompt": asked.prompt, **_text_fields(asked, number, settings), **asked.fields}
        case "openai-speech":
            return {"input": asked.prompt, "response_format": "wav", **asked.fields}
        case "openai-images":
            return {"prompt": asked.prompt, "response_format": "b64_json", **_image_fields(asked)}


def _content(asked: Asked) -> str | list[dict[str, Any]]:
    """Media stand before the words about them."""
    if not asked.media:
        return asked.prompt
    media = [{"type": PART_TYPES[one.kind], PART_TYPES[one.kind]: {"url": one.url}} for one in asked.media]
    return [*media, {"type": "text", "text": asked.prompt}]


def _text_fields(asked: Asked, number: int, settings: BenchSettings) -> dict[str, Any]:
    """Each request has a seed of its own, so that a run can be repeated."""
    fields: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    fields["seed"] = settings.load.seed + number
    if asked.output_length is not None:
        fields["max_tokens"] = asked.output_length
    if settings.ignore_eos:
        fields["ignore_eos"] = True
    return fields


def _image_fields(asked: Asked) -> dict[str, Any]:
    """Of width and height this endpoint makes a size."""
    fields = {name: value for name, value in asked.fields.items() if name not in SIZE}
    if all(name in asked.fields for name in SIZE):
        fields["size"] = f"{asked.fields['width']}x{asked.fields['height']}"
    return fields

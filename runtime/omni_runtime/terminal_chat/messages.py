"""A conversation as the API takes it: messages with their files in them."""

import base64
import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from omni_runtime.terminal_chat.settings import ChatError, ChatSettings

Message: TypeAlias = dict[str, Any]


def beginning(settings: ChatSettings) -> list[Message]:
    return [{"role": "system", "content": settings.system}] if settings.system else []


def said(text: str, images: Sequence[Path] = (), sounds: Sequence[Path] = ()) -> Message:
    """Media stand before the words about them. Raises ChatError for a file that cannot be read."""
    media = [
        *({"type": "image_url", "image_url": {"url": _data_url(path)}} for path in images),
        *({"type": "audio_url", "audio_url": {"url": _data_url(path)}} for path in sounds),
    ]
    return {"role": "user", "content": [*media, {"type": "text", "text": text}] if media else text}


def request(settings: ChatSettings, model: str, messages: Sequence[Message]) -> dict[str, Any]:
    body = {"model": model, "messages": list(messages), "stream": True, **(settings.sampling or {})}
    if not settings.wants_sound:
        return {**body, "modalities": ["text"]}
    voice = {} if settings.voice is None else {"voice": settings.voice}
    return {**body, "modalities": ["text", "audio"], "audio": {"format": settings.audio_format, **voice}}


def _data_url(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise ChatError(f"{path}: {exc.strerror}") from exc
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"

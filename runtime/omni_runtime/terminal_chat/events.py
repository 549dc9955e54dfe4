"""A streamed answer, line by line: what the API's events say. Pure."""

import base64
import json
from dataclasses import dataclass
from typing import Any

from omni_runtime.terminal_chat.settings import ChatError

DATA = "data: "
END = "[DONE]"


@dataclass(frozen=True)
class Heard:
    """What one event brings."""

    text: str = ""
    sound: bytes = b""
    no_sound: str = ""
    """Why there is no more sound."""


NOTHING = Heard()


def heard_in(line: str) -> Heard:
    """Raises ChatError with the server's words if the answer ends there with an error."""
    if not line.startswith(DATA) or line == DATA + END:
        return NOTHING
    event = json.loads(line.removeprefix(DATA))
    if "error" in event:
        raise ChatError(words_of(event))
    return _heard(event["choices"][0]["delta"]) if event.get("choices") else NOTHING


def words_of(answer: Any) -> str:
    """What an error's envelope says."""
    error = answer.get("error") if isinstance(answer, dict) else None
    return str(error["message"]) if isinstance(error, dict) and "message" in error else f"the server said {answer!r}"


def _heard(delta: dict[str, Any]) -> Heard:
    lost = delta.get("audio_error")
    return Heard(
        text=delta.get("content") or "",
        sound=base64.b64decode((delta.get("audio") or {}).get("data") or ""),
        no_sound="" if lost is None else str(lost["message"]),
    )

"""The messages of a chat as a chat template takes them, and the media in them. Pure; no library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Value

PARAM = "messages"
MEDIA = ("image", "audio", "video")
COPIED = ("name", "tool_calls", "tool_call_id")

MediaPart: TypeAlias = Mapping[str, Value]
Message: TypeAlias = dict[str, Value]


@dataclass(frozen=True)
class Conversation:
    """Messages whose media are placeholders, and the media in the order of the placeholders."""

    messages: tuple[Message, ...]
    media: tuple[MediaPart, ...]


def conversation_of(messages: Value, reads_parts: bool) -> Conversation:
    """`reads_parts`: the template takes a list of parts as content; else it gets the text alone."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes) or not messages:
        raise _refused("there must be at least one message")
    told: list[Message] = []
    media: list[MediaPart] = []
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise _refused("each message must be a map with a role")
        parts = _parts(message)
        media += [part for part in parts if part["type"] in MEDIA]
        copied = {key: message[key] for key in COPIED if message.get(key) is not None}
        told.append({"role": message["role"], "content": _content(parts, reads_parts)} | copied)
    if media and not reads_parts:
        raise _refused(f'this model reads text alone, and a message has a part of type "{media[0]["type"]!s}"')
    return Conversation(tuple(told), tuple(media))


def media_parts(media: Value) -> tuple[MediaPart, ...]:
    """The media that go with a prompt which is no chat, in the order of its placeholders."""
    if not isinstance(media, Sequence | None) or isinstance(media, str | bytes):
        raise _refused("media must be a list of parts")
    parts = tuple(part for part in media or () if isinstance(part, Mapping) and part.get("type") in MEDIA)
    if len(parts) < len(media or ()):
        raise _refused(f"media must be parts of type {', '.join(MEDIA)}")
    return parts


def _parts(message: Mapping[str, Value]) -> list[Mapping[str, Value]]:
    content = message.get("content") or []
    if not isinstance(content, Sequence) or isinstance(content, str | bytes):
        raise _refused("the content of a message must be a list of parts")
    parts = [part for part in content if isinstance(part, Mapping)]
    for part in parts:
        kind = part.get("type")
        if kind not in ("text", *MEDIA) or (kind == "text" and not isinstance(part.get("text"), str)):
            raise _refused(f"a part must have type text, image, audio or video, got {kind!r}")
    if len(parts) < len(content):
        raise _refused("each part of a message must be a map")
    return parts


def _content(parts: Sequence[Mapping[str, Value]], reads_parts: bool) -> Value:
    if not reads_parts:
        return "\n".join(text for part in parts if isinstance(text := part.get("text"), str))
    return [
        {"type": "text", "text": part["text"]} if part["type"] == "text" else {"type": part["type"]} for part in parts
    ]


def _refused(text: str) -> OmniError:
    return OmniError(ErrorCode.INVALID_REQUEST, text, PARAM)

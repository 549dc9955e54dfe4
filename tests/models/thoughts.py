"""What a thinker hands on to its talker, and the ways in which it may come."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from omni_contract.wire.chunk import Chunk
from omni_contract.wire.codec import decode, encode
from omni_contract.wire.payload import Payload
from omni_runtime.engines.ar.engine import ArEngine
from omni_runtime.engines.protocol import StageItem, StageRequest
from tests.models import media_requests

EDGE = "thinker->talker"
THINKS = {"temperature": 0.0, "max_tokens": 12, "min_tokens": 12}


def said(text: str, voice: str) -> dict[str, Any]:
    return {"messages": media_requests.said(text), "voice": voice}


def shown(voice: str) -> list[dict[str, Any]]:
    """Requests with pictures, sound and video, after turns that a talker may leave out."""
    part = media_requests.part
    turns = [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        *media_requests.said("hello"),
        {"role": "assistant", "content": [{"type": "text", "text": "hello world"}]},
    ]
    asked = (
        ("one", part("image", "wide"), "two", part("audio", "word"), part("image", "picture")),
        (part("video", "video"), "what happens?"),
        (part("video", "video", audio="sound"), "what happens?"),
    )
    return [{"messages": [*turns, *media_requests.said(*parts)], "voice": voice} for parts in asked]


async def thought(thinker: ArEngine, request: dict[str, Any]) -> list[Payload]:
    """The thinker's items, as another process would see them."""
    asked = StageRequest("r", {"": media_requests.as_payload(request["messages"])}, THINKS, (EDGE,))
    events = [event async for event in thinker.run(asked)]
    return [decode(encode(event.payload).to_bytes()) for event in events if isinstance(event, StageItem)]


def words(items: list[Payload]) -> list[int]:
    return [token for item in items for token in item["token_ids"]]


async def chunks(items: list[Payload], size: int, delay_s: float = 0.0) -> AsyncIterator[Chunk]:
    for start in range(0, len(items), size):
        await asyncio.sleep(delay_s)
        yield Chunk(tuple(items[start : start + size]))
    yield Chunk((), is_last=True)


def whole(items: list[Payload]) -> Payload:
    return Chunk(tuple(items), is_last=True).payload()

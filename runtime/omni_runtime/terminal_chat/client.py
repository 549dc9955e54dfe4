"""Asks the API: which model is there, and for one streamed answer."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from omni_runtime.terminal_chat.events import NOTHING, Heard, heard_in, words_of
from omni_runtime.terminal_chat.settings import ChatError, ChatSettings

CONNECT_S = 10
LONGEST_LINE_BYTES = 2**26
"""An event may hold seconds of sound."""


async def find_model(settings: ChatSettings) -> str:
    """The model to talk to. Raises ChatError if it is not served there, or does not do what is asked."""
    async with _answering(settings, "GET", "/v1/models") as answer:
        served = {one["id"]: one.get("modalities", []) for one in (await answer.json())["data"]}
    name = settings.model or next(iter(served), None)
    if name is None or name not in served:
        raise ChatError(f"{settings.url} serves {', '.join(served) or 'no model'}, and not {name}")
    needed = ["text", "audio"] if settings.wants_sound else ["text"]
    if missing := [modality for modality in needed if modality not in served[name]]:
        raise ChatError(f"{name} makes {', '.join(served[name])}, and no {' or '.join(missing)}")
    return name


async def answer_to(settings: ChatSettings, body: dict[str, Any]) -> AsyncGenerator[Heard, None]:
    """What is heard, as it comes. Leaving early ends the request at the server. Raises ChatError."""
    async with _answering(settings, "POST", "/v1/chat/completions", body) as answer:
        async for line in answer.content:
            if (heard := heard_in(line.decode().strip())) is not NOTHING:
                yield heard


@asynccontextmanager
async def _answering(
    settings: ChatSettings, method: str, path: str, body: dict[str, Any] | None = None
) -> AsyncIterator[aiohttp.ClientResponse]:
    headers = {} if settings.api_key is None else {"authorization": f"Bearer {settings.api_key}"}
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=headers, read_bufsize=LONGEST_LINE_BYTES) as session,
            session.request(method, settings.url + path, json=body) as answer,
        ):
            if answer.status != 200:
                raise ChatError(f"{answer.status}: {words_of(await _said(answer))}")
            yield answer
    except (TimeoutError, aiohttp.ClientError, ValueError) as exc:
        raise ChatError(f"{settings.url}: {exc or type(exc).__name__}") from exc


async def _said(answer: aiohttp.ClientResponse) -> Any:
    """What came with an error, which a proxy may have written."""
    return await answer.json() if answer.content_type == "application/json" else await answer.text()

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from starlette.types import Message

from omni_runtime.frontend.closing_stream import ClosingStream

SCOPE: dict[str, Any] = {"type": "http", "asgi": {"spec_version": "2.3"}}
"""As uvicorn says it."""


async def nothing_more() -> Message:
    return {"type": "http.disconnect"}


async def parts(*data: bytes) -> AsyncGenerator[bytes, None]:
    for one in data:
        yield one


@pytest.mark.case("runtime:C1")
async def test_work_ends_although_its_client_has_left_before_the_answer_began() -> None:
    """What was to be sent has not begun then, so that closing it would end nothing."""
    ended, work = list[str](), AsyncExitStack()
    work.callback(ended.append, "ended")

    async def never_sent(message: Message) -> None:
        await asyncio.Event().wait()

    async with asyncio.timeout(5):
        await ClosingStream(parts(b"a", b"b"), "text/plain", {}, work)(SCOPE, nothing_more, never_sent)
    assert ended == ["ended"]


async def test_work_ends_once_all_is_sent() -> None:
    order, work = list[str](), AsyncExitStack()
    work.callback(order.append, "ended")

    async def send(message: Message) -> None:
        order.append(message.get("body", b"head").decode())

    scope = {**SCOPE, "asgi": {"spec_version": "2.4"}}
    await ClosingStream(parts(b"a", b"b"), "text/plain", {}, work)(scope, nothing_more, send)
    assert order == ["head", "a", "b", "", "ended"]

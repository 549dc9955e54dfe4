"""Bodies that are too large, too slow, or never end."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from omni_contract.api.v1alpha1 import FrontendLimits
from omni_runtime.frontend.body import BoundedBody
from omni_runtime.frontend.request_scope import ClientGoneError

LIMITS = FrontendLimits(max_body_bytes=1024)


class Inner:
    """An application that reads its body and then waits for the next message."""

    def __init__(self) -> None:
        self.body = b""
        self.then: Message = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.body = (await receive())["body"]
        self.then = await receive()


async def run(messages: list[Message], headers: dict[bytes, bytes] | None = None) -> tuple[Inner, list[Message]]:
    inner, sent, left = Inner(), [], iter(messages)

    async def receive() -> Message:
        message = next(left, None)
        if message is None:
            await asyncio.Event().wait()
        assert message is not None
        return message

    async def send(message: Message) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/", "headers": list((headers or {}).items())}
    await BoundedBody(inner, lambda: LIMITS, timeout_s=0.05)(scope, receive, send)
    return inner, sent


def part(body: bytes, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


GONE: Message = {"type": "http.disconnect"}


async def test_the_parts_of_a_body_arrive_as_one_and_a_disconnect_after_it_is_seen() -> None:
    inner, sent = await run([part(b"a", True), part(b"b", True), part(b"c"), GONE])
    assert (inner.body, inner.then, sent) == (b"abc", GONE, [])


async def test_a_body_of_just_the_limit_passes() -> None:
    inner, _ = await run([part(bytes(1024)), GONE])
    assert len(inner.body) == 1024


@pytest.mark.parametrize("headers", [{}, {b"content-length": b"1025"}])
async def test_a_byte_more_is_refused(headers: dict[bytes, bytes]) -> None:
    inner, sent = await run([part(bytes(1000), True), part(bytes(25))], headers)
    assert sent[0]["status"] == 413
    assert inner.body == b""


async def test_a_body_that_stops_coming_is_refused() -> None:
    _, sent = await run([part(b"a", True)])
    assert sent[0]["status"] == 408


async def test_a_client_that_leaves_within_its_body_gets_no_answer() -> None:
    with pytest.raises(ClientGoneError):
        await run([part(b"a", True), GONE])

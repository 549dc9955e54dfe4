"""Answers that are made while they are sent."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class ClosingStream(StreamingResponse):
    """Closes what it sends, and the work behind it, however the answer ends.

    A client may be gone before the first byte is sent: what is sent has not begun then, and could not end the work.
    """

    def __init__(
        self,
        content: AsyncGenerator[str, None] | AsyncGenerator[bytes, None],
        media_type: str,
        headers: Mapping[str, str],
        work: AsyncExitStack,
    ) -> None:
        super().__init__(content, media_type=media_type, headers={**headers, "cache-control": "no-store"})
        self._content = content
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._work:
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._content):
            await super().stream_response(send)

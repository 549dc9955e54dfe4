"""Answers that are made while they are sent."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from fastapi.responses import StreamingResponse
from starlette.types import Send


class ClosingStream(StreamingResponse):
    """Closes what it sends however the answer ends, so that a client that leaves ends the work behind it at once."""

    def __init__(
        self,
        content: AsyncGenerator[str, None] | AsyncGenerator[bytes, None],
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(content, media_type=media_type, headers={**headers, "cache-control": "no-store"})
        self._content = content

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._content):
            await super().stream_response(send)

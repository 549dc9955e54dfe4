"""Server-sent events."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from fastapi.responses import StreamingResponse
from starlette.types import Send

MEDIA_TYPE = "text/event-stream"
EVENT_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answer, or its events with stream: true", "content": {MEDIA_TYPE: {}}}
}
"""What the documentation of a route says that answers with events if it is asked to."""


class EventStreamResponse(StreamingResponse):
    """Closes its events however the answer ends, so that a client that leaves ends the work behind them at once."""

    def __init__(self, events: AsyncGenerator[str, None], headers: Mapping[str, str]) -> None:
        super().__init__(events, media_type=MEDIA_TYPE, headers={**headers, "cache-control": "no-store"})
        self._events = events

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._events):
            await super().stream_response(send)

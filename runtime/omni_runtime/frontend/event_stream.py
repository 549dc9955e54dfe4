"""Server-sent events."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from fastapi.responses import StreamingResponse
from starlette.types import Send


class EventStreamResponse(StreamingResponse):
    """Closes its events however the answer ends, so that a client that leaves ends the work behind them at once."""

    def __init__(self, events: AsyncGenerator[str, None], headers: Mapping[str, str]) -> None:
        super().__init__(events, media_type="text/event-stream", headers={**headers, "cache-control": "no-store"})
        self._events = events

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._events):
            await super().stream_response(send)

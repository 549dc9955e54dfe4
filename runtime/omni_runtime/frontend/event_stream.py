"""Server-sent events."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from typing import Any

from omni_runtime.frontend.closing_stream import ClosingStream

MEDIA_TYPE = "text/event-stream"
EVENT_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answer, or its events with stream: true", "content": {MEDIA_TYPE: {}}}
}
"""What the documentation of a route says that answers with events if it is asked to."""


class EventStreamResponse(ClosingStream):
    def __init__(self, events: AsyncGenerator[str, None], headers: Mapping[str, str], work: AsyncExitStack) -> None:
        super().__init__(events, MEDIA_TYPE, headers, work)

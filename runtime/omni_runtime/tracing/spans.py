"""What the runtime's code sees of tracing: it starts spans and ends them. Without an exporter both cost nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

SpanKind: TypeAlias = Literal["internal", "server", "client"]
Attributes: TypeAlias = Mapping[str, str | int | float | bool]

REQUEST_ID = "omni.request_id"
STAGE = "omni.stage"
REPLICA = "omni.replica"
ATTEMPT = "omni.attempt"
EDGE = "omni.edge"
CONNECTOR = "omni.connector"
SIZE_BYTES = "omni.size_bytes"
ITEMS = "omni.items"
CHUNKS = "omni.chunks"
NOTHING: Attributes = {}


class Span(Protocol):
    @property
    def traceparent(self) -> str:
        """W3C trace context for spans under this one; what was handed in if this one is not recorded."""
        ...

    def end(self, error: str = "", attributes: Attributes = NOTHING) -> None:
        """Ends it now, as failed if there is an error; only the first call counts."""
        ...


class Tracing(Protocol):
    def start(self, name: str, parent: str = "", attributes: Attributes = NOTHING, kind: SpanKind = "internal") -> Span:
        """A span that begins now. `parent` is a W3C traceparent, empty for the first span of a trace."""
        ...

    def close(self) -> None:
        """Hands over what has not been exported yet."""
        ...


@dataclass(frozen=True)
class UnrecordedSpan:
    """Passes the trace on, so that the services around this one stay connected."""

    traceparent: str = ""

    def end(self, error: str = "", attributes: Attributes = NOTHING) -> None:
        pass


class Untraced:
    """No exporter was asked for."""

    def start(self, name: str, parent: str = "", attributes: Attributes = NOTHING, kind: SpanKind = "internal") -> Span:
        return UnrecordedSpan(parent) if parent else NO_SPAN

    def close(self) -> None:
        pass


NO_SPAN: Span = UnrecordedSpan()
UNTRACED: Tracing = Untraced()

"""What a connector has done since its start, and whether it works now."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from omni_contract.wire.errors import TransferError


@dataclass
class Counters:
    """Counted by a connector as it goes; read for metrics."""

    puts: int = 0
    put_bytes: int = 0
    gets: int = 0
    get_bytes: int = 0
    retries: int = 0
    detours: int = 0
    """Payloads that came over gRPC because the connector's own way failed."""
    errors: int = 0
    chunks: int = 0
    """Of streams, got."""
    chunk_messages: int = 0
    """In which they came: fewer than chunks when some had to wait and travelled together."""

    def put(self, size_bytes: int) -> None:
        self.puts += 1
        self.put_bytes += size_bytes

    def got(self, size_bytes: int) -> None:
        self.gets += 1
        self.get_bytes += size_bytes

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Counts the transfer that fails inside."""
        try:
            yield
        except TransferError:
            self.errors += 1
            raise


@dataclass(frozen=True)
class ConnectorHealth:
    """`reason` says what is wrong, and is empty while all is well."""

    reason: str = ""
    counters: Counters = field(default_factory=Counters)

    @property
    def is_healthy(self) -> bool:
        return not self.reason


@runtime_checkable
class Watched(Protocol):
    """A connector that tells how it is."""

    def health(self) -> ConnectorHealth: ...

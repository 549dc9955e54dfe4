"""What every connector does: moves payloads from the producing worker to the consuming one, by handle.

A connector either delivers or raises TransferError; it never returns "nothing". Every payload has an owner (the worker
that put it) and ends by release, by the end of its request, or with its owner's process.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle


@dataclass(frozen=True)
class Census:
    """What a connector holds now: payloads and their bytes."""

    payloads: int
    size_bytes: int


class Connector(Protocol):
    async def open(self) -> None:
        """Acquire what the connector needs; raises with the missing extra's name if a library is absent."""
        ...

    async def put(self, request_id: str, edge: str, payload: Payload, remaining_s: float) -> Handle:
        """Hold a payload for its consumer; the handle says how to get it."""
        ...

    async def get(self, handle: Handle, remaining_s: float) -> Payload:
        """The payload behind a handle, from whichever worker owns it. TransferError if it is gone or too late."""
        ...

    async def open_stream(self, request_id: str, edge: str, remaining_s: float) -> Handle: ...

    async def append(self, handle: Handle, chunk: Payload) -> None:
        """Add a chunk to an own stream; waits while the consumer is a full buffer behind."""
        ...

    async def end_stream(self, handle: Handle) -> None: ...

    def chunks(self, handle: Handle, remaining_s: float) -> AsyncIterator[Payload]: ...

    async def release(self, handle: Handle) -> None:
        """The consumer is done; no-op if the payload is gone already."""
        ...

    async def discard(self, request_id: str) -> None:
        """The owner drops all it holds for a request; no-op if it holds nothing."""
        ...

    def census(self) -> Census: ...

    async def close(self) -> None: ...

"""What every connector does: moves payloads from the producing worker to the consuming one, by handle.

A connector either delivers or raises TransferError; it never returns "nothing". Every payload has an owner (the worker
that put it) and ends by release, at its deadline, or with its owner's process.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

from omni_contract.api.v1alpha1 import ConnectorBlock
from omni_contract.wire.codec import EncodedPayload
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport


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
        """Hold a payload for its consumer until `remaining_s` has passed; the handle says how to get it.

        Nothing stays held when this raises or is cancelled.
        """
        ...

    async def get(self, handle: Handle, remaining_s: float) -> Payload:
        """The payload behind a handle, from whichever worker owns it. TransferError if it is gone or too late."""
        ...

    async def open_stream(self, request_id: str, edge: str, remaining_s: float) -> Handle: ...

    async def append(self, handle: Handle, chunk: Payload) -> None:
        """Add a chunk to an own stream; waits while the consumer is a full buffer behind.

        StreamDroppedError once the stream was released or its deadline has passed.
        """
        ...

    async def end_stream(self, handle: Handle) -> None: ...

    def chunks(self, handle: Handle, remaining_s: float) -> AsyncIterator[Payload]:
        """The chunks of a stream as they come, each once, until its end."""
        ...

    async def release(self, handle: Handle) -> None:
        """The consumer is done, or the owner drops its own payload; no-op if it is gone already."""
        ...

    def census(self) -> Census: ...

    async def wait_empty(self) -> None:
        """Returns once this process holds nothing that another may still want."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class TakesInline(Protocol):
    """A connector whose small payloads travel in the control message: nothing is held, and no handle is needed."""

    def inlined(self, request_id: str, edge: str, encoded: EncodedPayload) -> bytes | None:
        """None if the payload is to be put."""
        ...

    async def put_encoded(self, request_id: str, edge: str, encoded: EncodedPayload, remaining_s: float) -> Handle:
        """As `put`."""
        ...


class ConnectorError(Exception):
    """A connector that the process needs cannot be opened; the message names it and the way out."""


@dataclass(frozen=True)
class ArenaCensus:
    """How an arena of shared memory is used now. Lingering blocks lost their payload, but not yet their last reader."""

    size_bytes: int
    used_bytes: int
    blocks: int
    lingering: int


@runtime_checkable
class ArenaOwner(Protocol):
    """A connector with an arena of its own."""

    def arena_census(self) -> ArenaCensus | None:
        """None in a process that only consumes."""
        ...


class Production(StrEnum):
    """Whether edges that leave this process use the connector: none, those on which `auto` may pick it, or by name."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True)
class MemoryPlace:
    """Where payloads lie that processes share: a folder in memory, seen by all processes of the same locality."""

    folder: Path = Path("/dev/shm")
    locality: str = ""


Settings = TypeVar("Settings", bound=ConnectorBlock)


@dataclass(frozen=True)
class ConnectorContext:
    """What a connector knows of itself and of its process.

    `name` is the one that edges and handles use, `settings` the block of its entry in the model's `connectors`, `owner`
    the address at which others reach this process ("" if it serves nothing), `siblings` are the process's
    connectors by name, this one too. `transport` is how it reaches others; handles tell its component as `owner_stage`.
    """

    name: str
    settings: ConnectorBlock | None
    owner: str
    boot_id: str
    store: PayloadStore
    siblings: Mapping[str, Connector]
    production: Production = Production.NONE
    memory: MemoryPlace = MemoryPlace()
    transport: Transport = PLAIN

    def settings_as(self, block: type[Settings]) -> Settings:
        """The settings, of the type that the connector's kind stands for in the resource."""
        if not isinstance(self.settings, block):
            raise TypeError(f'connector "{self.name}" has {self.settings!r} for settings, not {block.kind}')
        return self.settings


ConnectorFactory: TypeAlias = Callable[[ConnectorContext], Connector]

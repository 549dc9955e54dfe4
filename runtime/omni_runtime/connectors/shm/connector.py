"""`shm`: the owner copies a payload into its arena, consumers in the same memory read it in place.

What a consumer gets are read-only views. The owner uses their block again once they are gone and the payload was
released or is past its deadline; `release` with views left takes effect with the last of them.
"""

import asyncio
import logging
import time
from pathlib import Path

from omni_contract.api.quantity import quantity
from omni_contract.api.v1alpha1 import ShmConnector as ShmSettings
from omni_contract.wire.codec import CodecError, EncodedPayload, decode, encode
from omni_contract.wire.errors import TransferError
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.budget import PayloadGoneError
from omni_runtime.connectors.counters import ConnectorHealth, Counters
from omni_runtime.connectors.elsewhere import ElsewhereConnector
from omni_runtime.connectors.grpc import GrpcConnector
from omni_runtime.connectors.protocol import ArenaCensus, Census, ConnectorContext, ConnectorError, Production
from omni_runtime.connectors.shm.arena import Arena, ArenaFullError, Block
from omni_runtime.connectors.shm.folder import ArenaError, sweep
from omni_runtime.connectors.shm.locator import Locator, locator_of, written
from omni_runtime.connectors.shm.reading import OWNERS_CHECK_S, ForeignArena, ForeignArenas, OwnerGoneError

READERS_LET_GO_S = OWNERS_CHECK_S + 1
NEXT_TRY_S = 0.5

logger = logging.getLogger(__name__)


class ShmConnector(ElsewhereConnector):
    """Both sides of the connector. A process that only consumes takes no memory of its own."""

    def __init__(self, context: ConnectorContext) -> None:
        super().__init__(context)
        self.counters = Counters()
        self._settings = context.settings_as(ShmSettings)
        self._folder = Path(self._settings.directory) if self._settings.directory else context.memory.folder
        self._size_bytes = int(quantity(self._settings.size))
        self._arena: Arena | None = None
        self._foreign = ForeignArenas(self._folder)
        self._is_closed = False

    async def open(self) -> None:
        if swept := sweep(self._folder):
            logger.info("removed %d arenas of dead processes from %s", len(swept), self._folder)
        if self._context.production is Production.NONE:
            return
        try:
            self._arena = await self._new_arena(READERS_LET_GO_S if swept else 0.0)
        except ArenaError as error:
            if self._context.production is Production.REQUIRED:
                way_out = "give the folder more memory, lower shm.size, or set shm.directory"
                raise ConnectorError(f'connector "{self._context.name}": {error}; {way_out}') from error
            logger.warning("no shared memory for auto, which uses grpc instead: %s", error)

    async def _new_arena(self, patience_s: float) -> Arena:
        """A dead process's memory is free once its readers have let go of it, too."""
        deadline_s = time.monotonic() + patience_s
        while True:
            try:
                # What is promised to edges that name the connector is there from the start.
                return Arena(self._folder, self._size_bytes, grows=self._context.production is Production.OPTIONAL)
            except ArenaError:
                if time.monotonic() >= deadline_s:
                    raise
                await asyncio.sleep(NEXT_TRY_S)

    async def put(self, request_id: str, edge: str, payload: Payload, remaining_s: float) -> Handle:
        arena, deadline_s = self._arena, time.monotonic() + remaining_s
        encoded = encode(payload, self._settings.checksum)
        if arena is None:
            raise TransferError(edge, request_id, f'this process has no arena for connector "{self._context.name}"')
        try:
            wait_s = min(self._settings.wait_seconds, remaining_s)
            block = arena.take(encoded.size_bytes) or await arena.reserve(encoded.size_bytes, wait_s)
        except ArenaFullError as error:
            way_out = f'raise shm.size of connector "{self._context.name}", now {self._settings.size}'
            raise TransferError(edge, request_id, f"{error}; {way_out}") from error
        await arena.fill(block, encoded)
        return self._held(request_id, edge, arena, block, deadline_s - time.monotonic())

    async def put_if_room(
        self, request_id: str, edge: str, encoded: EncodedPayload, remaining_s: float
    ) -> Handle | None:
        """For `auto`: None, at once, if the payload does not fit now."""
        arena, deadline_s = self._arena, time.monotonic() + remaining_s
        block = await arena.try_reserve(encoded.size_bytes) if arena else None
        if arena is None or block is None:
            return None
        await arena.fill(block, encoded)
        return self._held(request_id, edge, arena, block, deadline_s - time.monotonic())

    async def get(self, handle: Handle, remaining_s: float) -> Payload:
        try:
            payload = self._get(handle, remaining_s)
        except TransferError:
            self.counters.errors += 1
            raise
        self.counters.got(handle.size_bytes)
        return payload

    def _get(self, handle: Handle, remaining_s: float) -> Payload:
        if remaining_s <= 0:
            raise _transfer_error(handle, "the deadline had passed before the transfer began")
        locator = locator_of(handle)
        arena = self._reachable(locator)
        if arena is None:
            raise _transfer_error(handle, self._out_of_reach(handle, locator))
        try:
            return decode(arena.read(locator.offset, handle.key, handle.size_bytes))
        except PayloadGoneError as error:
            raise _transfer_error(handle, f"owner {handle.owner} has dropped it: {error}") from error
        except OwnerGoneError as error:
            raise _transfer_error(handle, f"owner {handle.owner} is gone or cannot be reached") from error
        except CodecError as error:
            raise _transfer_error(handle, f"the payload cannot be read: {error}") from error

    def can_read(self, handle: Handle) -> bool:
        """Whether the payload lies in memory that this process shares."""
        return self._reachable(locator_of(handle)) is not None

    async def release(self, handle: Handle) -> None:
        locator = locator_of(handle) if handle.locator else None
        arena = self._foreign.known(locator.arena) if locator else None
        if locator is None or arena is None:
            self._tell_owner(handle)
        else:
            arena.when_unread(locator.offset, lambda: self._tell_owner(handle))

    def census(self) -> Census:
        """The store counts the payloads."""
        return Census(payloads=0, size_bytes=self._arena.census().used_bytes if self._arena else 0)

    def health(self) -> ConnectorHealth:
        """A full arena is no trouble of the connector's; `arena_census` tells of it."""
        return ConnectorHealth("", self.counters)

    def arena_census(self) -> ArenaCensus | None:
        return self._arena.census() if self._arena else None

    async def close(self) -> None:
        self._is_closed = True
        self._foreign.close()
        if self._arena is not None:
            await self._arena.close()

    def _held(self, request_id: str, edge: str, arena: Arena, block: Block, remaining_s: float) -> Handle:
        """The payload's handle. From here on the block is the store's: it is free once the store has dropped it."""
        offset, memory = block
        size_bytes = memory.nbytes
        held = EncodedPayload((memory,), size_bytes)
        key = self._store.hold_elsewhere(held, remaining_s, lambda: arena.forget(offset))
        arena.sign(block, key)
        self.counters.put(size_bytes)
        handle = self._object_handle(key, request_id, edge, remaining_s)
        handle.size_bytes = size_bytes
        handle.locator = written(Locator(arena.name, offset, self._context.memory.locality))
        return handle

    def _reachable(self, locator: Locator) -> ForeignArena | None:
        """None if the arena's owner does not share memory with us, or has ended and taken its file along."""
        if locator.locality != self._context.memory.locality:
            return None
        try:
            return self._foreign.arena(locator.arena)
        except OSError as error:
            logger.debug("arena %s cannot be opened: %s", locator.arena, error)
            return None

    def _out_of_reach(self, handle: Handle, locator: Locator) -> str:
        here = self._context.memory.locality
        if locator.locality != here:
            return f'the payload lies in memory of "{locator.locality}", not of "{here}"; use connector auto or grpc'
        return f"owner {handle.owner} is gone or cannot be reached: its arena is not in {self._folder}"

    def _tell_owner(self, handle: Handle) -> None:
        if self._is_closed:
            return
        owner = self._context.siblings["grpc"]
        assert isinstance(owner, GrpcConnector)
        owner.release_soon(handle)


def _transfer_error(handle: Handle, reason: str) -> TransferError:
    return TransferError(handle.edge, handle.request_id, reason)

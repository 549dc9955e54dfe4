"""`mooncakeStore`: payloads lie in Mooncake's store, in the segment that their producer lends to it."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from omni_contract.api.quantity import quantity
from omni_contract.api.v1alpha1.mooncake import MooncakeStoreConnector as Settings
from omni_contract.wire.codec import EncodedPayload, encode
from omni_contract.wire.errors import TransferError
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.budget import PayloadGoneError, StoreFullError
from omni_runtime.connectors.counters import ConnectorHealth
from omni_runtime.connectors.mooncake.client import (
    NO_SUCH_OBJECT,
    WRONG_SIZE,
    Membership,
    MooncakeStoreClient,
    StoreClient,
    StoreError,
)
from omni_runtime.connectors.mooncake.library import reachable_host
from omni_runtime.connectors.mooncake.memory import HostMemory
from omni_runtime.connectors.mooncake.pool import Block
from omni_runtime.connectors.mooncake.pooled import PooledConnector, ReadFailedError, transfer_error
from omni_runtime.connectors.mooncake.segment import Segment
from omni_runtime.connectors.protocol import ConnectorContext, ConnectorError, Production
from omni_runtime.connectors.threads import Threads

THREADS = 8
MASTER_START_S = 60.0
LOOK_AGAIN_S = 0.2
SMALLEST_SEGMENT_BYTES = 16 * 2**20
"""The library takes none below."""

MakeClient: TypeAlias = Callable[[Settings, Membership], StoreClient]
Accepts: TypeAlias = Callable[[str, int], Awaitable[bool]]


async def accepts(host: str, port: int) -> bool:
    """Whether somebody listens there."""
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True


class MooncakeStore(PooledConnector):
    def __init__(
        self,
        context: ConnectorContext,
        make_client: MakeClient = MooncakeStoreClient,
        accepts: Accepts = accepts,
        master_start_s: float = MASTER_START_S,
    ) -> None:
        self._settings = context.settings_as(Settings)
        self._make_client = make_client
        self._accepts = accepts
        self._master_start_s = master_start_s
        super().__init__(context, "bufferSize", self._settings.wait_seconds, header_bytes=0)

    async def open(self) -> None:
        pool = self._use_pool(HostMemory(int(quantity(self._settings.buffer_size))))
        lends = self._context.production is not Production.NONE
        segment_bytes = max(int(quantity(self._settings.segment_size)), SMALLEST_SEGMENT_BYTES) if lends else 0
        self._client = await self._joined(segment_bytes)
        await asyncio.to_thread(self._client.register, pool.address, pool.size_bytes)
        self._threads = Threads("mooncake-store", THREADS)
        self._segment = Segment(segment_bytes, self._client, self._threads)

    async def put(self, request_id: str, edge: str, payload: Payload, remaining_s: float) -> Handle:
        encoded = encode(payload, checksum=self._settings.checksum)
        try:
            async with asyncio.timeout(remaining_s):
                key = await self._put(encoded, edge, request_id, remaining_s)
        except TimeoutError as error:
            raise TransferError(edge, request_id, f"the store did not take it within {remaining_s:.1f} s") from error
        except StoreError as error:
            raise TransferError(edge, request_id, f"the store does not take it: {error}") from error
        handle = self._object_handle("", request_id, edge, remaining_s)
        handle.size_bytes = encoded.size_bytes
        self.counters.put(encoded.size_bytes)
        return self._held_by("store", key, handle, remaining_s, lambda: self._segment.remove(key))

    def health(self) -> ConnectorHealth:
        return ConnectorHealth(self._segment.trouble, self.counters)

    async def close(self) -> None:
        await self._segment.close()
        self._threads.close()
        await asyncio.to_thread(self._client.close)

    async def _put(self, encoded: EncodedPayload, edge: str, request_id: str, remaining_s: float) -> str:
        """The key under which the store has it; nothing is held when this raises or is cancelled."""
        key = secrets.token_hex(12)
        block = await self._take(encoded.size_bytes, edge, request_id, remaining_s)
        try:
            await self._segment.reserve(key, encoded.size_bytes, min(self._wait_s, remaining_s))
        except StoreFullError as error:
            block.free()
            way_out = f'raise segmentSize or waitSeconds of connector "{self._context.name}"'
            raise TransferError(edge, request_id, f"{error}; {way_out}") from error
        except asyncio.CancelledError:
            block.free()
            raise
        await self._fill(key, block, encoded)
        return key

    async def _fill(self, key: str, block: Block, encoded: EncodedPayload) -> None:
        def give_up(_: object) -> None:
            block.free()
            self._segment.remove(key)

        try:
            await block.fill(encoded, start=0)
        except asyncio.CancelledError:
            give_up(None)
            raise
        try:
            await self._threads.run(lambda: self._client.put(key, block.address, encoded.size_bytes), late=give_up)
        except StoreError:
            give_up(None)
            raise
        block.free()

    async def _read(self, handle: Handle, block: Block) -> None:
        key = handle.locator.decode(errors="replace")
        try:
            await self._threads.run(lambda: self._read_now(key, block), late=lambda _: block.free())
        except StoreError as error:
            block.free()
            if error.code == NO_SUCH_OBJECT:
                raise PayloadGoneError from error
            if error.code == WRONG_SIZE:
                raise transfer_error(handle, f"the store's object has not {handle.size_bytes:,} bytes") from error
            raise ReadFailedError from error

    def _read_now(self, key: str, block: Block) -> None:
        """Runs on a thread."""
        self._client.get(key, block.address, block.size_bytes)
        # If it has been removed meanwhile, its memory may have been another's before the read was over.
        if not self._client.exists(key):
            raise StoreError(NO_SUCH_OBJECT)

    async def _joined(self, segment_bytes: int) -> StoreClient:
        """Waits for the master, since stages and master start in any order."""
        master = self._settings.master
        if master is None:
            raise ConnectorError(
                f'connector "{self._context.name}" is managed, but nobody started a master for this process'
            )
        await self._wait_for(master)
        host = reachable_host(self._settings, self._context.owner)
        try:
            return await asyncio.to_thread(self._make_client, self._settings, Membership(host, master, segment_bytes))
        except StoreError as error:
            raise ConnectorError(
                f'connector "{self._context.name}" cannot join the store of master {master}: {error}'
            ) from error

    async def _wait_for(self, master: str) -> None:
        """The library itself would try for 90 s and could not be cancelled."""
        host, _, port = master.rpartition(":")
        try:
            async with asyncio.timeout(self._master_start_s):
                while not await self._accepts(host, int(port)):  # noqa: ASYNC110 - nobody tells when the master is there
                    await asyncio.sleep(LOOK_AGAIN_S)
        except TimeoutError as error:
            raise ConnectorError(
                f'connector "{self._context.name}": no mooncake_master at {master} in {self._master_start_s:.0f} s; '
                "start one there, correct master, or set managed: true"
            ) from error

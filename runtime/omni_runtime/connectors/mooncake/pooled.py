"""What both connectors over Mooncake share: payloads pass through registered memory, and reads may fail."""

import asyncio
import logging
from abc import abstractmethod

from omni_contract.wire.codec import CodecError, decode
from omni_contract.wire.errors import TransferError
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.budget import PayloadGoneError, StoreFullError
from omni_runtime.connectors.counters import Counters
from omni_runtime.connectors.elsewhere import ElsewhereConnector
from omni_runtime.connectors.mooncake.memory import PoolMemory
from omni_runtime.connectors.mooncake.pool import Block, Pool
from omni_runtime.connectors.protocol import ConnectorContext

logger = logging.getLogger(__name__)

PAUSES_S = (0.0, 0.02, 0.1)
"""Before each try to read: after a silence, the library may refuse the first."""


class ReadFailedError(Exception):
    """The library could not read; it may next time."""


class PooledConnector(ElsewhereConnector):
    def __init__(self, context: ConnectorContext, pool_setting: str, wait_s: float, header_bytes: int) -> None:
        super().__init__(context)
        self.counters = Counters()
        self._pool_setting = pool_setting
        self._wait_s = wait_s
        self._header_bytes = header_bytes

    @abstractmethod
    async def _read(self, handle: Handle, block: Block) -> None:
        """Fills the block, or frees it and raises ReadFailedError or PayloadGoneError; so also when cancelled."""

    async def get(self, handle: Handle, remaining_s: float) -> Payload:
        with self.counters.failures():
            self._check_size(handle)
            if remaining_s <= 0:
                raise transfer_error(handle, "the deadline had passed before the transfer began")
            try:
                async with asyncio.timeout(remaining_s):
                    payload = await self._get(handle, remaining_s)
            except TimeoutError as error:
                reason = f"owner {handle.owner} did not deliver within {remaining_s:.1f} s"
                raise transfer_error(handle, reason) from error
        self.counters.got(handle.size_bytes)
        return payload

    @property
    def used_bytes(self) -> int:
        """Of the pool: payloads on their way, held for others, or still looked at."""
        return self._pool.used_bytes

    def _use_pool(self, memory: PoolMemory) -> Pool:
        self._pool = Pool(memory)
        return self._pool

    async def _take(self, size_bytes: int, edge: str, request_id: str, remaining_s: float) -> Block:
        try:
            return await self._pool.take(self._header_bytes + size_bytes, min(self._wait_s, remaining_s))
        except StoreFullError as error:
            way_out = f'raise {self._pool_setting} or waitSeconds of connector "{self._context.name}"'
            raise TransferError(edge, request_id, f"{error}; {way_out}") from error

    async def _get(self, handle: Handle, remaining_s: float) -> Payload:
        """By Mooncake; if that fails over gRPC, which brings the payload or says why it is gone."""
        for pause_s in PAUSES_S:
            await asyncio.sleep(pause_s)
            block = await self._take(handle.size_bytes, handle.edge, handle.request_id, remaining_s)
            try:
                await self._read(handle, block)
                return self._decoded(handle, await block.lend())
            except ReadFailedError:
                self.counters.retries += 1
            except PayloadGoneError:
                break
        payload = await self._owner.get(handle, remaining_s)
        self.counters.detours += 1
        logger.warning("a payload of %s came over gRPC, because Mooncake could not read it", handle.owner)
        return payload

    def _decoded(self, handle: Handle, data: memoryview) -> Payload:
        try:
            return decode(data[self._header_bytes :])
        except CodecError as error:
            raise transfer_error(handle, f"the payload cannot be read: {error}") from error

    def _check_size(self, handle: Handle) -> None:
        """A handle comes from the network: its size must not make us take memory without bound."""
        if self._header_bytes + handle.size_bytes > self._pool.size_bytes:
            reason = f"{handle.size_bytes:,} bytes are above this process's limit of {self._pool.size_bytes:,}"
            raise transfer_error(handle, reason)


def transfer_error(handle: Handle, reason: str) -> TransferError:
    return TransferError(handle.edge, handle.request_id, reason)

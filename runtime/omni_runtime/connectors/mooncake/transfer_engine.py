"""`mooncakeTransferEngine`: the producer puts payloads into registered memory, from which the consumer reads them.

A block is a header with the payload's key, and the payload. The owner erases the key before it uses the block again;
so a reader that finds the key before and after its read has read that payload and nothing else.
"""

import asyncio
import logging
import struct
from collections.abc import Callable, Iterator
from typing import TypeAlias

from omni_contract.api.quantity import quantity
from omni_contract.api.v1alpha1.mooncake import MooncakeTransferEngineConnector as Settings
from omni_contract.wire.codec import encode
from omni_contract.wire.layouts import ALIGNMENT
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.counters import ConnectorHealth
from omni_runtime.connectors.mooncake.engine import Engine, MooncakeEngine
from omni_runtime.connectors.mooncake.gpu import GpuMemory, load_driver
from omni_runtime.connectors.mooncake.library import reachable_host, reads_gpus
from omni_runtime.connectors.mooncake.memory import HostMemory, PoolMemory
from omni_runtime.connectors.mooncake.pool import Block
from omni_runtime.connectors.mooncake.pooled import PooledConnector, transfer_error
from omni_runtime.connectors.mooncake.reads import Plan, Reads, Source
from omni_runtime.connectors.protocol import ConnectorContext, ConnectorError

logger = logging.getLogger(__name__)

HEADER_BYTES = ALIGNMENT
KEY_BYTES = 24
LOCATOR = struct.Struct("<Q")
"""A block's address; the name of its session follows."""
CLOSE_S = 2.0

MakeEngine: TypeAlias = Callable[[Settings, str], Engine]
MakeMemory: TypeAlias = Callable[[int], PoolMemory]


def gpu_memory(size_bytes: int) -> PoolMemory:
    """Raises ConnectorError where there is no GPU, or a Mooncake that knows none."""
    driver = load_driver()
    if not reads_gpus():
        raise ConnectorError("needs Mooncake's build for CUDA; install omni-operator[mooncake-cuda]")
    return GpuMemory(size_bytes, driver)


class MooncakeTransferEngine(PooledConnector):
    def __init__(
        self,
        context: ConnectorContext,
        make_engine: MakeEngine = MooncakeEngine,
        make_gpu_memory: MakeMemory = gpu_memory,
    ) -> None:
        self._settings = context.settings_as(Settings)
        self._make_engine = make_engine
        self._make_gpu_memory = make_gpu_memory
        super().__init__(context, "poolSize", self._settings.wait_seconds, HEADER_BYTES)

    async def open(self) -> None:
        pool = self._use_pool(self._memory(int(quantity(self._settings.pool_size))))
        host = reachable_host(self._settings, self._context.owner)
        self._engine = await asyncio.to_thread(self._make_engine, self._settings, host)
        await asyncio.to_thread(self._engine.register, pool.address, pool.size_bytes)
        self._reads = Reads(self._engine)

    async def put(self, request_id: str, edge: str, payload: Payload, remaining_s: float) -> Handle:
        encoded = encode(payload, checksum=self._settings.checksum)
        block = await self._take(encoded.size_bytes, edge, request_id, remaining_s)
        try:
            await block.fill(encoded, HEADER_BYTES)
        except asyncio.CancelledError:
            block.free()
            raise
        held = Pooled(block)
        handle = self._object_handle("", request_id, edge, remaining_s)
        handle.key = self._store.hold_elsewhere(held, remaining_s, held.drop)
        handle.size_bytes = encoded.size_bytes
        handle.locator = LOCATOR.pack(block.address) + self._engine.session.encode()
        held.sign(handle.key)
        self.counters.put(encoded.size_bytes)
        return handle

    def health(self) -> ConnectorHealth:
        stuck = self._reads.abandoned
        return ConnectorHealth(f"reads that no longer matter, but do not end: {stuck}" if stuck else "", self.counters)

    async def close(self) -> None:
        if await self._reads.close(CLOSE_S):
            await asyncio.to_thread(self._engine.close)
            self._pool.memory.close()
        else:
            # The engine still writes into the pool, so that both must stay.
            logger.warning("%d reads still run while the process ends", self._reads.abandoned)

    async def _read(self, handle: Handle, block: Block) -> None:
        source = _source(handle, block)
        sizes = (HEADER_BYTES + handle.size_bytes, HEADER_BYTES)
        await self._reads.read(source, block, Plan(sizes, lambda: _take_key(block) == handle.key))

    def _memory(self, size_bytes: int) -> PoolMemory:
        if self._settings.pool_device == "cpu":
            return HostMemory(size_bytes)
        try:
            return self._make_gpu_memory(size_bytes)
        except ConnectorError as error:
            reason = f'connector "{self._context.name}": poolDevice cuda {error}; use poolDevice: cpu'
            raise ConnectorError(reason) from error


class Pooled:
    """A payload in the owner's pool."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def sign(self, key: str) -> None:
        """From here on readers find it."""
        _write_key(self._block, key)

    def slices(self, slice_bytes: int) -> Iterator[memoryview]:
        return self._block.slices(HEADER_BYTES, slice_bytes)

    def drop(self) -> None:
        _write_key(self._block, "")
        self._block.free()


def _source(handle: Handle, block: Block) -> Source:
    if len(handle.locator) <= LOCATOR.size:
        block.free()
        raise transfer_error(handle, "the handle does not say where the payload is")
    session = handle.locator[LOCATOR.size :].decode(errors="replace")
    return Source(session, *LOCATOR.unpack_from(handle.locator))


def _write_key(block: Block, key: str) -> None:
    block.write(0, memoryview(key.encode().ljust(KEY_BYTES, b"\0")))


def _take_key(block: Block) -> str:
    """The key in the block, which it holds no longer: so another read must bring it again."""
    key = bytes(block.read(0, KEY_BYTES)).decode(errors="replace")
    _write_key(block, "")
    return key

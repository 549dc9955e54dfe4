"""`yuanrong`: payloads lie in openYuanrong's data system, in the memory of its worker on each node."""

import asyncio
import importlib
import math
import secrets
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

from omni_contract.api.v1alpha1.yuanrong import YuanrongConnector as Settings
from omni_contract.wire.codec import CodecError, EncodedPayload, allocate, decode, encode
from omni_contract.wire.errors import TransferError
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.counters import ConnectorHealth, Counters
from omni_runtime.connectors.elsewhere import ElsewhereConnector
from omni_runtime.connectors.protocol import ConnectorContext, ConnectorError
from omni_runtime.connectors.removals import RemovalError, Removals
from omni_runtime.connectors.threads import Threads

PACKAGE = "openyuanrong-datasystem"
THREADS = 8
COPY_BYTES = 4 * 2**20
CONNECT_S = 10.0
LARGEST_BYTES = 2**31
NOT_FOUND = "Key not found"


class DataSystemError(Exception):
    """The data system refuses or fails; the message is the first line of its own."""


class NoSuchObjectError(DataSystemError):
    pass


class Draft(Protocol):
    """An object that is made but not published; it goes if nobody publishes it."""

    @property
    def memory(self) -> memoryview: ...

    def publish(self) -> None: ...


class DataSystem(Protocol):
    """Every call blocks and raises DataSystemError."""

    def create(self, key: str, size_bytes: int, lifetime_s: int) -> Draft: ...

    def read(self, key: str, timeout_ms: int) -> memoryview:
        """The object, in place; NoSuchObjectError if it does not appear within the time."""
        ...

    def delete(self, key: str) -> None: ...

    def is_healthy(self) -> bool: ...


Connect: TypeAlias = Callable[[Settings], DataSystem]


class Yuanrong(ElsewhereConnector):
    def __init__(self, context: ConnectorContext, connect: Connect | None = None) -> None:
        super().__init__(context)
        self.counters = Counters()
        self._settings = context.settings_as(Settings)
        self._connect = connect or KVDataSystem

    async def open(self) -> None:
        try:
            self._system = await asyncio.to_thread(self._connect, self._settings)
        except DataSystemError as error:
            raise ConnectorError(
                f'connector "{self._context.name}" cannot reach a worker of openYuanrong\'s data system at '
                f"{self._settings.host}:{self._settings.port}: {error}; start one there (dscli start) or correct host "
                "and port"
            ) from error
        self._threads = Threads("yuanrong", THREADS)
        self._removals = Removals(self._threads, self._remove_now, lambda _: None)

    async def put(self, request_id: str, edge: str, payload: Payload, remaining_s: float) -> Handle:
        encoded = encode(payload, checksum=self._settings.checksum)
        key = secrets.token_hex(12)
        try:
            async with asyncio.timeout(remaining_s):
                await self._put(key, encoded, math.ceil(remaining_s))
        except TimeoutError as error:
            reason = f"the data system did not take it within {remaining_s:.1f} s"
            raise TransferError(edge, request_id, reason) from error
        except DataSystemError as error:
            raise TransferError(edge, request_id, f"the data system does not take it: {error}") from error
        handle = self._object_handle("", request_id, edge, remaining_s)
        handle.size_bytes = encoded.size_bytes
        self.counters.put(encoded.size_bytes)
        return self._held_by("data system", key, handle, remaining_s, lambda: self._removals.add(key))

    async def get(self, handle: Handle, remaining_s: float) -> Payload:
        with self.counters.failures():
            payload = await self._get(handle, remaining_s)
        self.counters.got(handle.size_bytes)
        return payload

    def health(self) -> ConnectorHealth:
        reason = "" if self._system.is_healthy() else "the worker of the data system does not answer"
        return ConnectorHealth(reason or self._removals.trouble, self.counters)

    async def close(self) -> None:
        await self._removals.close()
        self._threads.close()

    async def _put(self, key: str, encoded: EncodedPayload, lifetime_s: int) -> None:
        """Nothing is held when this raises or is cancelled; what its owner loses goes with its lifetime."""
        draft = await self._threads.run(
            lambda: self._system.create(key, encoded.size_bytes, lifetime_s), late=lambda _: None
        )
        await _copy(encoded.slices(COPY_BYTES), draft.memory)
        await self._threads.run(draft.publish, late=lambda _: self._removals.add(key))

    async def _get(self, handle: Handle, remaining_s: float) -> Payload:
        self._check(handle, remaining_s)
        timeout_s = min(self._settings.get_timeout_seconds, remaining_s)
        key = handle.locator.decode(errors="replace")
        try:
            async with asyncio.timeout(remaining_s):
                found = await self._threads.run(
                    lambda: self._system.read(key, int(timeout_s * 1000)), late=lambda _: None
                )
                return decode(await self._copied(handle, found))
        except TimeoutError as error:
            reason = f"owner {handle.owner} did not deliver within {remaining_s:.1f} s"
            raise TransferError(handle.edge, handle.request_id, reason) from error
        except NoSuchObjectError:
            # Only its owner knows why.
            return await self._owner.get(handle, remaining_s)
        except (DataSystemError, CodecError) as error:
            raise TransferError(handle.edge, handle.request_id, f"the payload cannot be read: {error}") from error

    async def _copied(self, handle: Handle, found: memoryview) -> memoryview:
        """Consumers may write into what they get, but not into what others read."""
        if found.nbytes != handle.size_bytes:
            raise DataSystemError(f"{found.nbytes:,} of {handle.size_bytes:,} bytes arrived")
        block = allocate(found.nbytes)
        await _copy((found[start : start + COPY_BYTES] for start in range(0, found.nbytes, COPY_BYTES)), block)
        return block

    def _check(self, handle: Handle, remaining_s: float) -> None:
        if remaining_s <= 0:
            raise TransferError(handle.edge, handle.request_id, "the deadline had passed before the transfer began")
        if handle.size_bytes > LARGEST_BYTES:
            reason = f"{handle.size_bytes:,} bytes are above this process's limit of {LARGEST_BYTES:,}"
            raise TransferError(handle.edge, handle.request_id, reason)

    def _remove_now(self, key: str) -> None:
        try:
            self._system.delete(key)
        except DataSystemError as error:
            raise RemovalError(str(error)) from error


class KVDataSystem:
    """The real one, by its key-value client."""

    def __init__(self, settings: Settings) -> None:
        connect_ms = int(CONNECT_S * 1000)
        self._client: Any = _load().KVClient(settings.host, settings.port, connect_timeout_ms=connect_ms)
        _call(self._client.init)

    def create(self, key: str, size_bytes: int, lifetime_s: int) -> "KVDraft":
        (buffer,) = _call(lambda: self._client.mcreate([key], [size_bytes], ttl_second=lifetime_s))
        return KVDraft(self._client, buffer)

    def read(self, key: str, timeout_ms: int) -> memoryview:
        (buffer,) = _call(lambda: self._client.get_read_only_buffers([key], timeout_ms))
        if buffer is None:
            raise NoSuchObjectError(NOT_FOUND)
        return memoryview(buffer.immutable_data())

    def delete(self, key: str) -> None:
        _call(lambda: self._client.delete([key]))

    def is_healthy(self) -> bool:
        return bool(self._client.health_check().is_ok())


class KVDraft:
    def __init__(self, client: Any, buffer: Any) -> None:
        self._client = client
        self._buffer = buffer

    @property
    def memory(self) -> memoryview:
        return memoryview(self._buffer.MutableData())

    def publish(self) -> None:
        _call(lambda: self._client.mset_buffer([self._buffer]))


async def _copy(pieces: Iterator[memoryview], target: memoryview) -> None:
    """Piece by piece, so that the event loop has its turn between large ones."""
    position = 0
    for piece in pieces:
        target[position : position + piece.nbytes] = piece
        position += piece.nbytes
        if piece.nbytes == COPY_BYTES:
            await asyncio.sleep(0)


def _call(call: Callable[[], Any]) -> Any:
    """The client raises RuntimeError for everything, with a code in its text."""
    try:
        return call()
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise (NoSuchObjectError if NOT_FOUND in reason else DataSystemError)(reason) from error


def _load() -> Any:
    try:
        return importlib.import_module("yr.datasystem.kv_client")
    except ModuleNotFoundError as error:
        raise ConnectorError(
            f'a connector of kind yuanrong needs the package "{PACKAGE}" (Python 3.11); pip install {PACKAGE}==0.8.1'
        ) from error

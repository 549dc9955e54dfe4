"""Mooncake without Mooncake: both ends in one process, refusing and stalling as a test tells it."""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from omni_contract.api.v1alpha1.mooncake import MooncakeStoreConnector, MooncakeTransferEngineConnector
from omni_runtime.connectors.mooncake.client import NO_SUCH_OBJECT, WRONG_SIZE, Membership, StoreError
from omni_runtime.connectors.mooncake.engine import NO_BATCH, Progress


class FakeEngine:
    """Reads this process's own memory. While its gate is shut, reads stay under way."""

    def __init__(self, settings: MooncakeTransferEngineConnector, host: str) -> None:
        self.session = f"{host}:1"
        self.gate = threading.Event()
        self.gate.set()
        self.refusals = 0
        self.after_read: Callable[[], None] = lambda: None
        self.reads: list[tuple[int, int, int]] = []
        self.registered: list[tuple[int, int]] = []

    def register(self, address: int, size_bytes: int) -> None:
        self.registered.append((address, size_bytes))

    def begin_read(self, session: str, local: int, remote: int, size_bytes: int) -> int:
        if self.refusals:
            self.refusals -= 1
            return NO_BATCH
        self.reads.append((local, remote, size_bytes))
        return len(self.reads)

    def progress(self, batch: int) -> Progress:
        if not self.gate.is_set():
            return Progress.RUNNING
        ctypes.memmove(*self.reads[batch - 1])
        self.after_read()
        return Progress.DONE

    def close(self) -> None:
        self.registered.clear()


class FakeDriver:
    """CUDA's driver over the host's memory; `codes` are what calls answer that shall fail."""

    def __init__(self) -> None:
        self.allocated: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.codes: dict[str, int] = {}
        self.waits = 0

    def __getattr__(self, call: str) -> Callable[..., int]:
        """What makes no difference here."""
        return lambda *arguments: self.codes.get(call, 0)

    def cuMemAlloc_v2(self, address: Any, size_bytes: ctypes.c_size_t) -> int:
        block = ctypes.create_string_buffer(size_bytes.value)
        address._obj.value = ctypes.addressof(block)
        self.allocated[ctypes.addressof(block)] = block
        return self.codes.get("cuMemAlloc_v2", 0)

    def cuMemFree_v2(self, address: ctypes.c_uint64) -> int:
        del self.allocated[address.value]
        return 0

    def cuMemcpyHtoDAsync_v2(self, target: Any, source: Any, size_bytes: ctypes.c_size_t, stream: object) -> int:
        ctypes.memmove(target.value, source, size_bytes.value)
        return 0

    def cuMemcpyDtoHAsync_v2(self, target: Any, source: Any, size_bytes: ctypes.c_size_t, stream: object) -> int:
        ctypes.memmove(target, source.value, size_bytes.value)
        return 0

    def cuStreamSynchronize(self, stream: object) -> int:
        self.waits += 1
        return 0


class FakeStore:
    """One store for as many clients as the test makes; `failures` are the codes that its next calls raise."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.failures: list[int] = []
        self.after_get: Callable[[], None] = lambda: None
        self.entered = 0
        self.removed = 0
        self.gate = threading.Event()
        self.gate.set()

    def client(self, settings: MooncakeStoreConnector, membership: Membership) -> "FakeStoreClient":
        return FakeStoreClient(self)

    def enter(self) -> None:
        self.entered += 1
        self.gate.wait()
        if self.failures:
            raise StoreError(self.failures.pop(0))


class FakeStoreClient:
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def register(self, address: int, size_bytes: int) -> None:
        pass

    def put(self, key: str, address: int, size_bytes: int) -> None:
        self._store.enter()
        self._store.objects[key] = ctypes.string_at(address, size_bytes)

    def get(self, key: str, address: int, size_bytes: int) -> None:
        self._store.enter()
        if key not in self._store.objects:
            raise StoreError(NO_SUCH_OBJECT)
        if len(self._store.objects[key]) != size_bytes:
            raise StoreError(WRONG_SIZE)
        ctypes.memmove(address, self._store.objects[key], size_bytes)
        self._store.after_get()

    def exists(self, key: str) -> bool:
        return key in self._store.objects

    def remove(self, key: str) -> None:
        self._store.removed += 1
        if self._store.objects.pop(key, None) is None:
            raise StoreError(NO_SUCH_OBJECT)

    def close(self) -> None:
        pass

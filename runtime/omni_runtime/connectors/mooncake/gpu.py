"""Memory of a process's first GPU, by CUDA's driver alone: connectors know no torch.

Copies take a stream of their own, so that they do not wait for what the engine computes, and have ended when the call
returns: the network device that reads the memory next waits for no stream.
"""

import ctypes
from collections.abc import Callable
from typing import Protocol

from omni_contract.wire.codec import allocate
from omni_runtime.connectors.mooncake.memory import copied
from omni_runtime.connectors.protocol import ConnectorError

DRIVER = "libcuda.so.1"
FIRST_DEVICE = 0
NON_BLOCKING = 1
OUT_OF_MEMORY = 2
SYNC_MEMOPS = 6
"""Attribute of memory that devices beside the GPU read and write."""


class Driver(Protocol):
    """CUDA's driver; each call answers with a code, 0 for success."""

    def __getattr__(self, call: str) -> Callable[..., int]: ...


def load_driver(name: str = DRIVER) -> Driver:
    """Raises ConnectorError where there is no GPU."""
    try:
        driver = ctypes.CDLL(name)
    except OSError as error:
        raise ConnectorError(f"needs a GPU, and this process sees none ({error})") from error
    if code := driver.cuInit(0):
        raise ConnectorError(f"needs a GPU, and this process sees none (CUDA answers {code})")
    return driver


class GpuMemory:
    """Shares the device's primary context with the engine in this process."""

    def __init__(self, size_bytes: int, driver: Driver) -> None:
        self.size_bytes = size_bytes
        self._driver = driver
        self._context, self._stream, address = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), FIRST_DEVICE)
        self._enter()
        self._call("cuStreamCreate", ctypes.byref(self._stream), NON_BLOCKING)
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size_bytes))
        self._call("cuPointerSetAttribute", ctypes.byref(ctypes.c_int(1)), SYNC_MEMOPS, address)
        self.address = address.value

    def write(self, position: int, data: memoryview) -> None:
        # A read-only view has no address that ctypes tells; its bytes have.
        source = (ctypes.c_char * data.nbytes).from_buffer(data) if not data.readonly else bytes(data)
        self._copy("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(self.address + position), source, data.nbytes)

    def read(self, position: int, size_bytes: int) -> memoryview:
        copy = allocate(size_bytes)
        target = (ctypes.c_char * size_bytes).from_buffer(copy)
        self._copy("cuMemcpyDtoHAsync_v2", target, ctypes.c_uint64(self.address + position), size_bytes)
        return copy

    async def lend(self, position: int, size_bytes: int, when_unused: Callable[[], None]) -> memoryview:
        try:
            return await copied(self, position, size_bytes)
        finally:
            when_unused()

    def close(self) -> None:
        self._enter()
        self._call("cuMemFree_v2", ctypes.c_uint64(self.address))
        self._call("cuStreamDestroy_v2", self._stream)
        self._call("cuDevicePrimaryCtxRelease_v2", FIRST_DEVICE)

    def _copy(self, call: str, target: object, source: object, size_bytes: int) -> None:
        self._enter()
        self._call(call, target, source, ctypes.c_size_t(size_bytes), self._stream)
        self._call("cuStreamSynchronize", self._stream)

    def _enter(self) -> None:
        """Contexts are of threads, and the engine may have chosen another on this one."""
        self._call("cuCtxSetCurrent", self._context)

    def _call(self, call: str, *arguments: object) -> None:
        if code := getattr(self._driver, call)(*arguments):
            reason = f"no room for {self.size_bytes:,} bytes" if code == OUT_OF_MEMORY else f"code {code}"
            raise ConnectorError(f"fails on the GPU: {call} answers {reason}")

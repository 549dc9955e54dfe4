"""A file in memory, mapped into this process once. Views of it tell when their last user is gone.

Through libc, because a mapping of Python's own can neither be a read-only one whose address is known nor be told apart
by its views; and because libc lets other threads run while pages are prepared.
"""

import ctypes
import mmap
import os
import weakref
from collections.abc import Callable

MADV_POPULATE_READ = 22
MADV_POPULATE_WRITE = 23
FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class _Use(weakref.ref["ctypes.Array[ctypes.c_ubyte]"]):
    """One view of a mapping and what to do after it: a weakref.finalize that costs a third."""

    __slots__ = ("when_unused",)
    when_unused: Callable[[], None]


class Mapping:
    """The whole of an open file. `close` once no view is left."""

    def __init__(self, descriptor: int, size_bytes: int, is_writable: bool) -> None:
        self.size_bytes = size_bytes
        self.is_writable = is_writable
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if is_writable else 0)
        self._address = _libc.mmap(None, size_bytes, protection, mmap.MAP_SHARED, descriptor, 0)
        if self._address == FAILED:
            raise _error("mmap")
        # One type for views of every length: they are cut to length before anybody sees them.
        self._region = ctypes.c_ubyte * size_bytes
        self.bytes = self._memory(self._region.from_address(self._address))
        self._uses: dict[int, _Use] = {}

    def view(self, offset: int, size_bytes: int, when_unused: Callable[[], None]) -> memoryview:
        """A part of the memory. `when_unused` is called, on any thread, once neither it nor a view of it is left."""
        region = self._region.from_address(self._address + offset)
        use = _Use(region, self._ended)
        use.when_unused = when_unused
        self._uses[id(use)] = use
        return self._memory(region)[:size_bytes]

    def populate(self, size_bytes: int) -> None:
        """Lets the kernel prepare the first pages now, which costs several times as much as a copy into them."""
        advice = MADV_POPULATE_WRITE if self.is_writable else MADV_POPULATE_READ
        if _libc.madvise(self._address, size_bytes, advice) != 0:
            raise _error("madvise")

    def close(self) -> None:
        self.bytes.release()
        _libc.munmap(self._address, self.size_bytes)

    def _ended(self, use: "_Use") -> None:
        del self._uses[id(use)]
        use.when_unused()

    def _memory(self, region: "ctypes.Array[ctypes.c_ubyte]") -> memoryview:
        view = memoryview(region).cast("B")
        return view if self.is_writable else view.toreadonly()


def _error(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")

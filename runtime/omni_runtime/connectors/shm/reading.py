"""The consumer's side of shared memory: arenas of other processes, each mapped once, read in place.

While a view of a block lives, this process holds a lease on it, so that its owner does not use it for anything else.
"""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from omni_runtime.connectors.budget import PayloadGoneError
from omni_runtime.connectors.shm import folder as files
from omni_runtime.connectors.shm import lease
from omni_runtime.connectors.shm.arena import HEADER, HEADER_BYTES
from omni_runtime.connectors.shm.loop import HomeLoop
from omni_runtime.connectors.shm.mapping import Mapping

OWNERS_CHECK_S = 5.0
"""How soon the memory of a dead owner's arena is given back."""
OWNER_SEEN_S = 0.05
"""For so long an owner counts as alive without being looked for: what it left stays whole, so nothing is lost by it."""


class OwnerGoneError(Exception):
    """The arena's owner has ended."""


class ForeignArena:
    """One arena of another process."""

    def __init__(self, descriptor: int) -> None:
        self._file = descriptor
        self._mapping = Mapping(descriptor, os.fstat(descriptor).st_size, is_writable=False)
        self._home = HomeLoop()
        self._views: dict[int, int] = {}
        self._waiting: dict[int, list[Callable[[], None]]] = defaultdict(list)
        self._owner_seen_s = -OWNER_SEEN_S
        self._is_closed = False

    @property
    def is_abandoned(self) -> bool:
        """Nobody owns it and nobody here reads it."""
        return not self._views and not lease.has_owner(self._file)

    def read(self, offset: int, key: str, size_bytes: int) -> memoryview:
        """The payload's bytes, in place; raises PayloadGoneError or OwnerGoneError."""
        if offset < 0 or offset + HEADER_BYTES + size_bytes > self._mapping.size_bytes:
            raise PayloadGoneError(f"no payload of {size_bytes:,} bytes lies at {offset:,} of its arena")
        views = self._views.get(offset, 0)
        if not views:
            lease.begin_reading(self._file, offset)
        self._views[offset] = views + 1
        try:
            # Under the lease: before, the owner might use the block for another payload meanwhile.
            self._check(offset, key, size_bytes)
        except (PayloadGoneError, OwnerGoneError):
            self._unused(offset)
            raise
        return self._mapping.view(offset + HEADER_BYTES, size_bytes, lambda: self._home.call(self._unused, offset))

    def when_unread(self, offset: int, then: Callable[[], None]) -> None:
        """Now if nobody here reads the block, else once the last view of it is gone."""
        if offset in self._views:
            self._waiting[offset].append(then)
        else:
            then()

    def close(self) -> None:
        """With views left, the memory and the leases stay until the last one is gone."""
        self._is_closed = True
        if not self._views:
            self._mapping.close()
            os.close(self._file)

    def _check(self, offset: int, key: str, size_bytes: int) -> None:
        held_key, held_bytes = HEADER.unpack_from(self._mapping.bytes, offset)
        if held_key != key.encode():
            raise PayloadGoneError("the payload is not held here (any more)")
        if held_bytes != size_bytes:
            raise PayloadGoneError(f"the payload has {held_bytes:,} bytes, not {size_bytes:,}")
        if (now_s := time.monotonic()) >= self._owner_seen_s + OWNER_SEEN_S:
            if not lease.has_owner(self._file):
                raise OwnerGoneError
            self._owner_seen_s = now_s

    def _unused(self, offset: int) -> None:
        self._views[offset] -= 1
        if self._views[offset]:
            return
        del self._views[offset]
        lease.end_reading(self._file, offset)
        for then in self._waiting.pop(offset, []):
            then()
        if self._is_closed:
            self.close()


class ForeignArenas:
    """All that this process reads, by name. Those whose owner has died are let go of within seconds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arenas: dict[str, ForeignArena] = {}
        self._check: asyncio.TimerHandle | None = None

    def arena(self, name: str) -> ForeignArena:
        """Raises OSError if the arena is not in this folder."""
        if name not in self._arenas:
            self._let_go_of_abandoned()
            self._arenas[name] = ForeignArena(files.open_existing(self._folder, name))
            self._check_later()
        return self._arenas[name]

    def known(self, name: str) -> ForeignArena | None:
        return self._arenas.get(name)

    def close(self) -> None:
        if self._check is not None:
            self._check.cancel()
        for arena in self._arenas.values():
            arena.close()
        self._arenas.clear()

    def _check_later(self) -> None:
        if self._check is None and self._arenas:
            self._check = asyncio.get_running_loop().call_later(OWNERS_CHECK_S, self._check_owners)

    def _check_owners(self) -> None:
        self._check = None
        self._let_go_of_abandoned()
        self._check_later()

    def _let_go_of_abandoned(self) -> None:
        for name in [name for name, arena in self._arenas.items() if arena.is_abandoned]:
            self._arenas.pop(name).close()

"""The memory that this process lends to the store, and what of it its payloads take."""

import asyncio
from contextlib import suppress

from omni_runtime.connectors.budget import Budget
from omni_runtime.connectors.mooncake.client import NO_SUCH_OBJECT, StoreClient, StoreError
from omni_runtime.connectors.removals import RemovalError, Removals
from omni_runtime.connectors.threads import Threads


def taken_bytes(size_bytes: int) -> int:
    """What the store's allocator takes for an object: it knows eight sizes between a power of two and the next."""
    step = 1 << max(size_bytes.bit_length() - 4, 0)
    return -(-size_bytes // step) * step


class Segment:
    """Lives on one event loop."""

    def __init__(self, size_bytes: int, client: StoreClient, threads: Threads) -> None:
        self._budget = Budget(size_bytes)
        self._client = client
        self._sizes: dict[str, int] = {}
        self._freed = asyncio.Event()
        self._removals = Removals(threads, self._remove_now, self._removed)

    @property
    def trouble(self) -> str:
        return self._removals.trouble

    async def reserve(self, key: str, size_bytes: int, wait_s: float) -> None:
        """Raises StoreFullError if there is no room within the time; `remove` gives the room back."""
        size_bytes = taken_bytes(size_bytes)
        # When the time is up, taking says what is missing.
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while self._budget.used_bytes + size_bytes > self._budget.limit_bytes:
                    self._freed.clear()
                    await self._freed.wait()
        self._budget.take(size_bytes)
        self._sizes[key] = size_bytes

    def remove(self, key: str) -> None:
        """Soon; an object that cannot be removed goes with this process's segment."""
        self._removals.add(key)

    async def close(self) -> None:
        await self._removals.close()

    def _removed(self, key: str) -> None:
        self._budget.give(self._sizes.pop(key))
        self._freed.set()

    def _remove_now(self, key: str) -> None:
        try:
            self._client.remove(key)
        except StoreError as error:
            if error.code != NO_SUCH_OBJECT:
                raise RemovalError(str(error)) from error

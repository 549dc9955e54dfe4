"""Payloads that this process holds for others, within a byte limit. Served by the worker's Fetch.

Most lie in ordinary memory; a connector whose payloads lie elsewhere has the store keep their time and hand them out.
Everything runs on one event loop. A payload leaves by `drop` or soon after its deadline, whichever comes first.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from omni_contract.wire.codec import EncodedPayload
from omni_runtime.connectors.budget import Budget, PayloadGoneError
from omni_runtime.connectors.stream import ChunkStream
from omni_runtime.deadlines import Deadlines


class HeldObject(Protocol):
    """The encoded bytes of a payload, wherever they are."""

    def slices(self, slice_bytes: int) -> Iterator[memoryview]:
        """The bytes in order; PayloadGoneError if they are not there any more."""
        ...


Held: TypeAlias = HeldObject | ChunkStream
WhenDropped: TypeAlias = Callable[[], None]
KEY_BYTES, KEYS_AT_ONCE = 12, 64


@dataclass(slots=True)
class _Entry:
    held: Held
    tick: int
    """At which its time is up."""
    when_dropped: list[WhenDropped] = field(default_factory=list)


class PayloadStore:
    """Objects and streams by key. Keys are random, so that a guess finds nothing."""

    def __init__(self, limit_bytes: int) -> None:
        self._budget = Budget(limit_bytes)
        self._keys = _random_keys()
        self._deadlines = Deadlines(self.drop)
        self._entries: dict[str, _Entry] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def limit_bytes(self) -> int:
        return self._budget.limit_bytes

    @property
    def size_bytes(self) -> int:
        return self._budget.used_bytes

    def __len__(self) -> int:
        return len(self._entries)

    def hold(self, payload: EncodedPayload, remaining_s: float) -> str:
        """Raises StoreFullError above the byte limit."""
        self._budget.take(payload.size_bytes)
        return self._add(payload, remaining_s, lambda: self._budget.give(payload.size_bytes))

    def hold_elsewhere(self, held: HeldObject, remaining_s: float, drop: WhenDropped) -> str:
        """For bytes that are not in this store's memory, and do not count there; `drop` frees them."""
        return self._add(held, remaining_s, drop)

    def open_stream(self, remaining_s: float) -> str:
        stream = ChunkStream(self._budget)
        return self._add(stream, remaining_s, stream.drop)

    def object(self, key: str) -> HeldObject:
        held = self._find(key).held
        if isinstance(held, ChunkStream):
            raise PayloadGoneError("the key belongs to a stream")
        return held

    def stream(self, key: str) -> ChunkStream:
        held = self._find(key).held
        if not isinstance(held, ChunkStream):
            raise PayloadGoneError("the key belongs to an object")
        return held

    def when_dropped(self, key: str, call: WhenDropped) -> None:
        """Calls once the key is gone, however that comes; PayloadGoneError if it is gone already."""
        self._find(key).when_dropped.append(call)

    def drop(self, key: str) -> None:
        """Frees what the key stands for; unknown keys are ignored, since release and deadline may race."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        self._deadlines.remove(key, entry.tick)
        for call in entry.when_dropped:
            call()
        if not self._entries:
            self._empty.set()

    async def wait_empty(self) -> None:
        await self._empty.wait()

    def close(self) -> None:
        for key in list(self._entries):
            self.drop(key)

    def _add(self, held: Held, remaining_s: float, drop: WhenDropped) -> str:
        key = next(self._keys)
        self._entries[key] = _Entry(held, self._deadlines.add(key, remaining_s), [drop])
        self._empty.clear()
        return key

    def _find(self, key: str) -> _Entry:
        if key not in self._entries:
            raise PayloadGoneError("the payload is not held here (any more)")
        return self._entries[key]


def _random_keys() -> Iterator[str]:
    """Endless; the kernel is asked for many at a time."""
    while True:
        noise = os.urandom(KEY_BYTES * KEYS_AT_ONCE).hex()
        yield from (noise[start : start + 2 * KEY_BYTES] for start in range(0, len(noise), 2 * KEY_BYTES))

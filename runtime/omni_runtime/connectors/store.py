"""Payloads that this process holds for others, in ordinary memory, within a byte limit. Served by the worker's Fetch.

Everything runs on one event loop. A payload leaves by `drop` or at its deadline, whichever comes first.
"""

import asyncio
import secrets
from typing import TypeAlias

from omni_contract.wire.codec import EncodedPayload
from omni_runtime.connectors.budget import Budget, PayloadGoneError
from omni_runtime.connectors.stream import ChunkStream

Held: TypeAlias = EncodedPayload | ChunkStream


class PayloadStore:
    """Objects and streams by key. Keys are random, so that a guess finds nothing."""

    def __init__(self, limit_bytes: int) -> None:
        self._budget = Budget(limit_bytes)
        self._held: dict[str, tuple[Held, asyncio.TimerHandle]] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def limit_bytes(self) -> int:
        return self._budget.limit_bytes

    @property
    def size_bytes(self) -> int:
        return self._budget.used_bytes

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, payload: EncodedPayload, remaining_s: float) -> str:
        """Raises StoreFullError above the byte limit."""
        self._budget.take(payload.size_bytes)
        return self._add(payload, remaining_s)

    def open_stream(self, remaining_s: float) -> str:
        return self._add(ChunkStream(self._budget), remaining_s)

    def object(self, key: str) -> EncodedPayload:
        held = self._find(key)
        if not isinstance(held, EncodedPayload):
            raise PayloadGoneError("the key belongs to a stream")
        return held

    def stream(self, key: str) -> ChunkStream:
        held = self._find(key)
        if not isinstance(held, ChunkStream):
            raise PayloadGoneError("the key belongs to an object")
        return held

    def drop(self, key: str) -> None:
        """Frees what the key stands for; unknown keys are ignored, since release and deadline may race."""
        if key not in self._held:
            return
        held, deadline = self._held.pop(key)
        deadline.cancel()
        if isinstance(held, ChunkStream):
            held.drop()
        else:
            self._budget.give(held.size_bytes)
        if not self._held:
            self._empty.set()

    async def wait_empty(self) -> None:
        await self._empty.wait()

    def close(self) -> None:
        for key in list(self._held):
            self.drop(key)

    def _add(self, held: Held, remaining_s: float) -> str:
        key = secrets.token_hex(12)
        self._held[key] = (held, asyncio.get_running_loop().call_later(remaining_s, self.drop, key))
        self._empty.clear()
        return key

    def _find(self, key: str) -> Held:
        if key not in self._held:
            raise PayloadGoneError("the payload is not held here (any more)")
        return self._held[key][0]

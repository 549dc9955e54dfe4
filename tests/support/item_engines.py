"""Engines that make or read items as a test says, where the fake engine's behaviors are not enough."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload
from omni_runtime.engines.protocol import StageEvent, StageItem, StageNothing, StageOutput, StageRequest
from tests.omni_runtime.worker.engines import GatedEngine


class ItemsEngine(GatedEngine):
    """Makes as many items as the test allows; `made` counts those that the worker has asked for."""

    def __init__(self, items: int, extra: Payload | None = None) -> None:
        super().__init__()
        self.made = 0
        self._items = items
        self._extra = extra or {}
        self._allowed = asyncio.Semaphore(0)
        self._changed = asyncio.Condition()

    def allow(self, items: int) -> None:
        for _ in range(items):
            self._allowed.release()

    async def until_made(self, items: int) -> None:
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(lambda: self.made >= items)

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        self.running.append(request.request_id)
        try:
            for number in range(self._items):
                async with self._changed:
                    self.made += 1
                    self._changed.notify_all()
                await self._allowed.acquire()
                for edge in request.outputs:
                    yield StageItem(edge, {"item": number, **self._extra})
        finally:
            self.running.remove(request.request_id)


class EarlyEngine(GatedEngine):
    """Answers after the first item, and reads no more."""

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        [edge] = request.edges
        async for chunk in request.chunks(edge):
            yield StageOutput("", {"first": chunk.items[0]["item"]})
            return


class SilentEngine(GatedEngine):
    """Ends each request before it has made an item."""

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        for edge in request.outputs:
            yield StageNothing(edge)


class FailsOnce(ItemsEngine):
    """Fails its first request after so many items, and then does all that it is asked; reads what streams to it."""

    def __init__(self, after: int, error: Exception | None = None, allowed: int = 1000) -> None:
        super().__init__(40)
        self.allow(allowed)
        self._after = after
        self._error = error or OmniError(ErrorCode.STAGE_FAILED, "told to fail")
        self._has_failed = False

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        items = [item for edge in request.edges async for chunk in self._read(request, edge) for item in chunk.items]
        if request.streams:
            yield StageOutput("", {"items": items})
            return
        number = 0
        async for event in super().run(request):
            self._fail_at(number)
            number += 1
            yield event

    async def _read(self, request: StageRequest, edge: str) -> AsyncIterator[Any]:
        async for chunk in request.chunks(edge):
            if request.streams:
                self._fail_at(self._after)
            yield chunk

    def _fail_at(self, number: int) -> None:
        if number == self._after and not self._has_failed:
            self._has_failed = True
            raise self._error

"""Engines that do what a test says, where the fake engine's behaviors are not enough."""

import asyncio
from collections.abc import AsyncIterator, Callable

from omni_contract.wire.payload import Payload
from omni_runtime.engines.protocol import ReportLoading, StageEvent, StageOutput, StageRequest


class GatedEngine:
    """Answers each request with `make(request)` once the gate is open; `running` holds the ids inside the engine."""

    def __init__(self, make: Callable[[StageRequest], Payload] = lambda request: dict(request.inputs[""])) -> None:
        self.gate = asyncio.Event()
        self.running: list[str] = []
        self.begun: list[str] = []
        self.requests: list[StageRequest] = []
        self.age_s = 0.0
        self._make = make

    async def load(self, report: ReportLoading) -> None:
        pass

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        self.running.append(request.request_id)
        self.begun.append(request.request_id)
        self.requests.append(request)
        try:
            await self.gate.wait()
            for edge in request.outputs:
                yield StageOutput(edge, self._make(request))
        finally:
            self.running.remove(request.request_id)

    def heartbeat_age_s(self) -> float:
        return self.age_s

    async def close(self) -> None:
        pass


class RaisingEngine(GatedEngine):
    """Fails the requests that `error` answers with an exception."""

    def __init__(self, error: Callable[[StageRequest], Exception | None]) -> None:
        super().__init__()
        self.gate.set()
        self._error = error

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        if (error := self._error(request)) is not None:
            raise error
        async for event in super().run(request):
            yield event

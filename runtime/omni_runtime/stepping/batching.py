"""An engine on a step thread whose steps are shared by the requests that are ready."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

import torch

from omni_contract.wire.errors import OmniError
from omni_runtime.engines.protocol import EngineDiedError, StageUsage
from omni_runtime.stepping.batches import Batches, P
from omni_runtime.stepping.engine import M, StageLimits, SteppingEngine
from omni_runtime.stepping.resident import Loading
from omni_runtime.stepping.step_profile import watched
from omni_runtime.stepping.step_thread import Ticket

T = TypeVar("T")


@dataclass(frozen=True)
class BatchSettings:
    """Most requests that a step takes together, and how long it waits for them."""

    size: int
    timeout_s: float


@dataclass
class BatchShare:
    """What a request has had of its engine's steps."""

    steps: int = 0
    busy_s: float = 0.0
    """Its part of the steps' time."""
    batch_id: int = 0
    """Of its last step."""
    largest: int = 1
    """Requests in the fullest of its steps."""

    def add(self, batch_id: int, size: int, busy_s: float) -> None:
        self.steps += 1
        self.busy_s += busy_s / size
        self.batch_id = batch_id
        self.largest = max(self.largest, size)

    def usage(self, input_tokens: int = 0, output_tokens: int = 0) -> StageUsage:
        return StageUsage(
            input_tokens,
            output_tokens,
            steps=self.steps,
            compute_seconds=self.busy_s,
            batch_id=self.batch_id,
            batch_size=self.largest,
        )


class BatchingEngine(SteppingEngine[M], Generic[M, P]):
    """`_step` says what a step is. A cancel takes effect between two of them."""

    def __init__(
        self, limits: StageLimits, batch: BatchSettings, load: Callable[[], Loading[M]], device: torch.device
    ) -> None:
        super().__init__(limits, load, device)
        self._batches: Batches[P] = Batches(batch.size, batch.timeout_s)
        self._driver: asyncio.Task[None] | None = None
        self._batch_ids = count(1)

    async def load(self, report: Callable[[str], None]) -> None:
        await super().load(report)
        self._driver = asyncio.create_task(self._drive(), name=f"batches-{self._limits.stage}")
        self._driver.add_done_callback(self._driver_ended)

    async def close(self) -> None:
        if self._driver is not None:
            self._driver.cancel()
            await asyncio.gather(self._driver, return_exceptions=True)
        await super().close()

    @abstractmethod
    async def _step(self, places: Sequence[P]) -> None:
        """One step of all of them. If it raises OmniError, all are as before."""

    async def _turn(self, step: Callable[[], T], name: str) -> tuple[T, float]:
        """What the step returned on the thread, and how long that took."""
        self._thread.check_alive()
        ticket: Ticket[tuple[T]] = self._thread.submit(watched(_once(step), name, self._recording))
        [(made,)] = [item async for item in ticket.items()]
        return made, ticket.busy_s

    @property
    def _awake(self) -> M:
        model = self._model.ready
        assert model is not None, "the worker lets an engine sleep only when nothing runs"
        return model

    async def _drive(self) -> None:
        while True:
            await self._serve(await self._batches.next())

    def _driver_ended(self, driver: asyncio.Task[None]) -> None:
        """Without steps no request ends; so they end here, and with them the worker."""
        if not driver.cancelled() and (cause := driver.exception()) is not None:
            death = cause if isinstance(cause, EngineDiedError) else EngineDiedError(f"no more steps: {cause}")
            for place in self._batches.places:
                place.fail(death)

    async def _serve(self, batch: Sequence[P]) -> None:
        for place in batch:
            place.begin()
        try:
            await self._try(batch)
        finally:
            for place in batch:
                place.release()

    async def _try(self, batch: Sequence[P]) -> None:
        """If one breaks the step of many, whose it was shows when each has a step of its own."""
        try:
            await self._step(batch)
        except OmniError as error:
            if len(batch) == 1:
                batch[0].fail(error)
                return
            for place in batch:
                await self._try([place])


def _once(step: Callable[[], T]) -> Iterator[tuple[T] | None]:
    """In a tuple, as None would only end the turn."""
    yield (step(),)

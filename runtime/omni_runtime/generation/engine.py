"""The generation engine: a codec on a step thread, its steps shared by the requests that are ready."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

import torch

from omni_contract.wire.errors import OmniError
from omni_contract.wire.payload import Payload
from omni_runtime.engines.items import pieces_as_they_come
from omni_runtime.engines.parameters import parameters_for
from omni_runtime.engines.protocol import EngineDiedError, StageEvent, StageItem, StageRequest, StageUsage
from omni_runtime.generation.batches import Batches
from omni_runtime.generation.codes import frames_of
from omni_runtime.generation.decoder import Decoder, Turn
from omni_runtime.generation.seat import Seat
from omni_runtime.stepping.engine import StageLimits, SteppingEngine
from omni_runtime.stepping.resident import Loading
from omni_runtime.stepping.step_profile import watched
from omni_runtime.stepping.step_thread import Ticket
from omni_runtime.stepping.tensors import to_array

FRAMES_AT_ONCE = 300
"""Of one request, read together at most."""
Made: TypeAlias = Sequence[torch.Tensor | None]
"""What a step made for each of its streams."""


@dataclass(frozen=True)
class BatchSettings:
    """Most requests that a step takes together, and how long it waits for them."""

    size: int
    timeout_s: float


class GenerationEngine(SteppingEngine[Decoder]):
    """Each step takes from every request in its batch what there is; a cancel takes effect between two steps."""

    def __init__(
        self, limits: StageLimits, batch: BatchSettings, load: Callable[[], Loading[Decoder]], device: torch.device
    ) -> None:
        super().__init__(limits, load, device)
        self._batches = Batches(batch.size, batch.timeout_s)
        self._driver: asyncio.Task[None] | None = None

    async def load(self, report: Callable[[str], None]) -> None:
        await super().load(report)
        self._driver = asyncio.create_task(self._drive(), name=f"batches-{self._limits.stage}")
        self._driver.add_done_callback(self._driver_ended)

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        decoder = self._admitted()
        async with self._seated(request, decoder) as seat:
            pieces = 0
            async with aclosing(seat.sound()) as sound:
                async for samples in sound:
                    pieces += 1
                    for edge in request.outputs:
                        yield StageItem(edge, _audio(samples, decoder))
            if not pieces:
                for edge in request.outputs:
                    yield StageItem(edge, _audio(torch.empty(0), decoder))
            yield StageUsage(steps=seat.steps, compute_seconds=seat.busy_s)

    async def close(self) -> None:
        if self._driver is not None:
            self._driver.cancel()
            await asyncio.gather(self._driver, return_exceptions=True)
        await super().close()

    @asynccontextmanager
    async def _seated(self, request: StageRequest, decoder: Decoder) -> AsyncIterator[Seat]:
        """The request's seat; however the block ends, nothing works for it any more when it is left."""
        self._in_flight += 1
        try:
            parameters = parameters_for(self._limits.stage, request.parameters)
            stream = await self._thread.call(lambda: decoder.begin(parameters))
            seat = Seat(stream, decoder.frames_per_step, self._batches.changed)
            try:
                with self._batches.taking(seat):
                    async with _reading(request, decoder, seat):
                        yield seat
            finally:
                await seat.left()
        finally:
            self._in_flight -= 1

    async def _drive(self) -> None:
        while True:
            await self._serve(await self._batches.next())

    def _driver_ended(self, driver: asyncio.Task[None]) -> None:
        """Without steps no request ends; so they end here, and with them the worker."""
        if not driver.cancelled() and (cause := driver.exception()) is not None:
            death = cause if isinstance(cause, EngineDiedError) else EngineDiedError(f"no more steps: {cause}")
            for seat in self._batches.seats:
                seat.fail(death)

    async def _serve(self, batch: Sequence[Seat]) -> None:
        turns = [seat.take() for seat in batch]
        try:
            await self._try(batch, turns)
        finally:
            for seat in batch:
                seat.release()

    async def _try(self, batch: Sequence[Seat], turns: Sequence[Turn]) -> None:
        """If one breaks the step of many, whose it was shows when each has a step of its own."""
        try:
            made, busy_s = await self._step(turns)
        except OmniError as error:
            if len(batch) == 1:
                batch[0].fail(error)
                return
            for seat, turn in zip(batch, turns, strict=True):
                await self._try([seat], [turn])
            return
        for seat, samples in zip(batch, made, strict=True):
            seat.give(samples, busy_s / len(batch))

    async def _step(self, turns: Sequence[Turn]) -> tuple[Made, float]:
        self._thread.check_alive()
        decoder = self._model.ready
        assert decoder is not None, "the worker lets an engine sleep only when nothing runs"
        work = watched(_once(lambda: decoder.step(turns)), f"batch of {len(turns)}", self._recording)
        ticket: Ticket[Made] = self._thread.submit(work)
        [made] = [item async for item in ticket.items()]
        return made, ticket.busy_s


@asynccontextmanager
async def _reading(request: StageRequest, decoder: Decoder, seat: Seat) -> AsyncIterator[None]:
    """The seat is fed while the block runs; whatever goes wrong with its codes ends this request alone."""

    def ended(reader: asyncio.Task[None]) -> None:
        if not reader.cancelled() and (error := reader.exception()) is not None:
            seat.fail(error)

    reader = asyncio.create_task(_read(request, decoder, seat), name=f"codes-{request.request_id}")
    reader.add_done_callback(ended)
    try:
        yield
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)


async def _read(request: StageRequest, decoder: Decoder, seat: Seat) -> None:
    """The frames of a chunk at once: a step costs about as much for many as for one."""
    async with aclosing(pieces_as_they_come(request, FRAMES_AT_ONCE)) as pieces:
        async for _, items in pieces:
            await seat.feed(*frames_of(items, decoder.code_groups, decoder.codebook_size))
    seat.end()


def _once(step: Callable[[], Made]) -> Iterator[Made | None]:
    yield step()


def _audio(samples: torch.Tensor, decoder: Decoder) -> Payload:
    return {"audio": to_array(samples), "sample_rate": decoder.sample_rate}

"""The generation engine: a codec on a step thread, its steps shared by the requests that are ready."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

import torch

from omni_contract.wire.payload import Payload
from omni_runtime.engines.items import pieces_as_they_come
from omni_runtime.engines.parameters import parameters_for
from omni_runtime.engines.protocol import StageEvent, StageItem, StageRequest
from omni_runtime.generation.codes import frames_of
from omni_runtime.generation.decoder import Decoder
from omni_runtime.generation.seat import Seat
from omni_runtime.stepping.batching import BatchingEngine
from omni_runtime.stepping.tensors import to_array

FRAMES_AT_ONCE = 300
"""Of one request, read together at most."""


class GenerationEngine(BatchingEngine[Decoder, Seat]):
    """Each step takes from every request in its batch what there is; a cancel takes effect between two steps."""

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
            yield seat.share.usage()

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

    async def _step(self, places: Sequence[Seat]) -> None:
        decoder, turns = self._awake, [seat.turn for seat in places]
        made, busy_s = await self._turn(lambda: decoder.step(turns), f"batch of {len(turns)}")
        batch_id = next(self._batch_ids)
        for seat, samples in zip(places, made, strict=True):
            seat.share.add(batch_id, len(places), busy_s)
            seat.give(samples)


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


def _audio(samples: torch.Tensor, decoder: Decoder) -> Payload:
    return {"audio": to_array(samples), "sample_rate": decoder.sample_rate}

"""The ar engine's backend `transformers` for talkers: without vLLM, an item of each speech that is ready in a step.

A speech may begin with the thinker's first word and wait for each further one; while it waits it takes part in no step.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any

from omni_contract.wire.payload import Payload
from omni_runtime.engines.items import items_as_they_come
from omni_runtime.engines.parameters import parameters_for
from omni_runtime.engines.protocol import StageEvent, StageItem, StageNothing, StageRequest
from omni_runtime.stepping.batching import BatchingEngine
from omni_runtime.talking.seat import Seat
from omni_runtime.talking.talker import SpeaksTogether, Talker


class TalkerEngine(BatchingEngine[Talker, Seat]):
    """A cancel takes effect between two steps."""

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        async with self._seated(request, self._admitted()) as seat:
            async with aclosing(seat.items()) as items:
                async for item in items:
                    for edge in request.outputs:
                        yield StageItem(edge, item)
            if not seat.frames:
                for edge in request.outputs:
                    yield StageNothing(edge)
            yield seat.share.usage(self._awake.input_tokens(seat.speech), seat.frames)

    @asynccontextmanager
    async def _seated(self, request: StageRequest, talker: Talker) -> AsyncIterator[Seat]:
        """The request's seat; however the block ends, nothing works for it any more when it is left."""
        self._in_flight += 1
        try:
            speech = talker.begin(parameters_for(self._limits.stage, request.parameters))
            shares = isinstance(talker, SpeaksTogether)
            seat = Seat(speech, shares, lambda: talker.can_speak(speech), self._batches.changed)
            try:
                with self._batches.taking(seat):
                    async with _listening(request, talker, seat):
                        yield seat
            finally:
                await seat.left()
        finally:
            self._in_flight -= 1

    async def _step(self, places: Sequence[Seat]) -> None:
        speeches = [seat.speech for seat in places]
        said, busy_s = await self._turn(partial(_said, self._awake, speeches), f"codes of {len(speeches)}")
        batch_id = next(self._batch_ids)
        for seat, item in zip(places, said, strict=True):
            seat.share.add(batch_id, len(places), busy_s)
            seat.give(item)


def _said(talker: Talker, speeches: Sequence[Any]) -> Sequence[Payload | None]:
    if len(speeches) == 1:
        return [talker.speak(speeches[0])]
    assert isinstance(talker, SpeaksTogether), "only those that can have a key in common"
    return talker.speak_together(speeches)


@asynccontextmanager
async def _listening(request: StageRequest, talker: Talker, seat: Seat) -> AsyncIterator[None]:
    """The speech hears the thinker while the block runs; what goes wrong with its words ends this request alone."""

    def ended(listener: asyncio.Task[None]) -> None:
        if not listener.cancelled() and (error := listener.exception()) is not None:
            seat.fail(error)

    listener = asyncio.create_task(_listen(request, talker, seat), name=f"words-{request.request_id}")
    listener.add_done_callback(ended)
    try:
        yield
    finally:
        listener.cancel()
        await asyncio.gather(listener, return_exceptions=True)


async def _listen(request: StageRequest, talker: Talker, seat: Seat) -> None:
    async with aclosing(items_as_they_come(request)) as items:
        async for _, item in items:
            talker.hear(seat.speech, item)
            seat.heard()
    talker.heard_all(seat.speech)
    seat.heard()

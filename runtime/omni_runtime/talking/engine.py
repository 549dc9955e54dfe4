"""The ar engine's backend `transformers` for talkers: exact and without vLLM, one step of one request at a time.

A speech begins with the thinker's first word and waits for each further one; its results never depend on neighbours.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from omni_contract.wire.payload import Payload
from omni_runtime.engines.items import items_as_they_come
from omni_runtime.engines.parameters import parameters_for
from omni_runtime.engines.protocol import StageEvent, StageItem, StageRequest, StageUsage
from omni_runtime.stepping.engine import SteppingEngine
from omni_runtime.stepping.step_profile import watched
from omni_runtime.stepping.step_thread import Ticket
from omni_runtime.talking.talker import Talker


class TalkerEngine(SteppingEngine[Talker]):
    """Requests take turns on the thread, a token each; a cancel takes effect between two tokens."""

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        talker = self._admitted()
        self._in_flight += 1
        try:
            speech = talker.begin(parameters_for(self._limits.stage, request.parameters))
            frames, busy_s = 0, 0.0
            async with _listening(request, talker, speech) as ear, aclosing(self._said(talker, speech, ear)) as said:
                async for item, took_s in said:
                    frames, busy_s = frames + 1, busy_s + took_s
                    for edge in request.outputs:
                        yield StageItem(edge, item)
            yield StageUsage(talker.input_tokens(speech), frames, steps=frames, compute_seconds=busy_s)
        finally:
            self._in_flight -= 1

    async def _said(self, talker: Talker, speech: Any, ear: "_Ear") -> AsyncGenerator[tuple[Payload, float], None]:
        """Each item with the time that it took."""
        while True:
            await ear.until(lambda: talker.can_speak(speech))
            self._thread.check_alive()
            work = watched(_once(lambda: talker.speak(speech)), "token", self._recording)
            ticket: Ticket[tuple[Payload | None]] = self._thread.submit(work)
            [(item,)] = [made async for made in ticket.items()]
            if item is None:
                return
            yield item, ticket.busy_s


def _once(step: Callable[[], Payload | None]) -> Iterator[tuple[Payload | None] | None]:
    """In a tuple, as None would only end the turn."""
    yield (step(),)


class _Ear:
    """Wakes whoever waits for the thinker's next word."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._error: BaseException | None = None

    def heard(self) -> None:
        self._changed.set()

    def broke(self, error: BaseException) -> None:
        self._error = error
        self._changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Raises what ended the thinker's words before it held."""
        while not holds():
            if self._error is not None:
                raise self._error
            await self._changed.wait()
            self._changed.clear()


@asynccontextmanager
async def _listening(request: StageRequest, talker: Talker, speech: Any) -> AsyncIterator[_Ear]:
    """The speech hears the thinker while the block runs."""
    ear = _Ear()

    async def listen() -> None:
        async with aclosing(items_as_they_come(request)) as items:
            async for _, item in items:
                talker.hear(speech, item)
                ear.heard()
        talker.heard_all(speech)
        ear.heard()

    def ended(listener: asyncio.Task[None]) -> None:
        if not listener.cancelled() and (error := listener.exception()) is not None:
            ear.broke(error)

    listener = asyncio.create_task(listen(), name=f"words-{request.request_id}")
    listener.add_done_callback(ended)
    try:
        yield ear
    finally:
        listener.cancel()
        await asyncio.gather(listener, return_exceptions=True)

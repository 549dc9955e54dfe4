"""The one thread that runs a stage's torch work, in turns, and hands what comes out to the event loop.

Torch is not asynchronous; with all requests on one thread, each step of one runs between steps of the others, in fair
rotation, and the event loop stays free. Nothing polls: the thread sleeps on a condition while nobody needs a turn.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import copy_context
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any, Generic, TypeVar

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.engines.protocol import EngineDiedError
from omni_runtime.stepping.rotation import Rotation

logger = logging.getLogger(__name__)

STOP_TIMEOUT_S = 15
"""A turn may be the loading of a large component; below the 30 s after which kubelet kills."""

T = TypeVar("T")


@dataclass(frozen=True)
class End:
    """How work ended; without an error, well."""

    error: Exception | None


class Mailbox:
    """Calls made on the event loop from another thread, as many as there are in one wake-up."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._calls: list[Callable[[], None]] = []

    def post(self, call: Callable[[], None]) -> None:
        with self._lock:
            self._calls.append(call)
            is_first = len(self._calls) == 1
        if is_first:
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, []
        for call in calls:
            call()


class Ticket(Generic[T]):
    """One request's work, as the event loop sees it. Ended means that the thread has dropped the work for good."""

    def __init__(self, work: Iterator[T | None], mailbox: Mailbox) -> None:
        self.work = work
        self.context = copy_context()
        """The submitter's, so that log lines of the work carry its request id."""
        self.is_cancelled = False
        self.busy_s = 0.0
        """Time on the thread; final once ended."""
        self._mailbox = mailbox
        self._items: deque[T] = deque()
        self._changed = asyncio.Event()
        self._has_ended = asyncio.Event()
        self._error: Exception | None = None

    async def items(self) -> AsyncIterator[T]:
        """What the work yielded, in order; raises the error that ended it."""
        while not (self._has_ended.is_set() and not self._items):
            await self._changed.wait()
            self._changed.clear()
            while self._items:
                yield self._items.popleft()
        if self._error is not None:
            raise self._error

    async def ended(self) -> None:
        await self._has_ended.wait()

    def post(self, item: T) -> None:
        self._mailbox.post(lambda: self._add(item))

    def post_end(self, error: Exception | None) -> None:
        self._mailbox.post(lambda: self._end(error))

    def _add(self, item: T) -> None:
        self._items.append(item)
        self._changed.set()

    def _end(self, error: Exception | None) -> None:
        self._error = error
        self._has_ended.set()
        self._changed.set()


class StepThread:
    """Owned by an engine; `start` on its event loop, `stop` once.

    `prepare` runs first, on the thread; `translate` turns an exception of the work into the error of its request.
    """

    def __init__(self, name: str, prepare: Callable[[], None], translate: Callable[[Exception], Exception]) -> None:
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._prepare = prepare
        self._translate = translate
        self._wake = threading.Condition()
        self._rotation: Rotation[Ticket[Any]] = Rotation()
        self._turn_began: float | None = None
        self._is_stopping = False
        self._has_left = False
        """True once the thread takes no further turn, which is a little before it has ended."""
        self._mailbox: Mailbox

    def start(self) -> None:
        self._mailbox = Mailbox(asyncio.get_running_loop())
        self._thread.start()

    def submit(self, work: Iterator[T | None]) -> Ticket[T]:
        """Give `work` its turns. It yields None to end a turn, anything else to hand out an item and go on.

        Raises EngineDiedError if it would never get one.
        """
        ticket = Ticket(work, self._mailbox)
        with self._wake:
            if self._has_left:
                raise self._died()
            self._rotation.join(ticket)
            self._wake.notify()
        return ticket

    async def call(self, call: Callable[[], T]) -> T:
        """What one call returned, which had a turn of its own."""
        self.check_alive()
        ticket: Ticket[tuple[T]] = self.submit(_once(call))
        [(result,)] = [item async for item in ticket.items()]
        return result

    def cancel(self, ticket: Ticket[Any]) -> None:
        """Close the work before anybody else's next turn; no-op if it ended."""
        with self._wake:
            ticket.is_cancelled = True
            self._rotation.hurry(ticket)

    def heartbeat_age_s(self) -> float:
        began = self._turn_began
        if not self.is_alive:
            return inf
        return 0.0 if began is None else monotonic() - began

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def check_alive(self) -> None:
        """Raises EngineDiedError if nothing would ever get a turn."""
        if not self.is_alive:
            raise self._died()

    def _died(self) -> EngineDiedError:
        return EngineDiedError(f"the thread {self._thread.name} has ended")

    async def stop(self) -> None:
        """End what is left as cancelled and let the thread finish its present turn; no-op if it never started."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        if self.is_alive:
            await asyncio.to_thread(self._thread.join, STOP_TIMEOUT_S)
        if self.is_alive:
            logger.warning("thread %s is still in a turn after %d s", self._thread.name, STOP_TIMEOUT_S)

    def _main(self) -> None:
        self._prepare()
        while (ticket := self._next()) is not None:
            ticket.context.run(self._turn, ticket)

    def _next(self) -> Ticket[Any] | None:
        with self._wake:
            self._wake.wait_for(lambda: len(self._rotation) > 0 or self._is_stopping)
            if not self._rotation:
                self._has_left = True
                return None
            ticket = self._rotation.take()
            ticket.is_cancelled |= self._is_stopping
            return ticket

    def _turn(self, ticket: Ticket[Any]) -> None:
        began = self._turn_began = monotonic()
        end = self._advance(ticket)
        ticket.busy_s += monotonic() - began
        self._turn_began = None
        if end is None:
            self._rejoin(ticket)
            return
        # Dropped here, so that what the work held is free before anybody hears of the end.
        ticket.work = iter(())
        ticket.post_end(end.error)

    def _advance(self, ticket: Ticket[Any]) -> End | None:
        """None if the work wants another turn."""
        try:
            if ticket.is_cancelled:
                raise OmniError(ErrorCode.CANCELLED, "the request was cancelled")
            for item in ticket.work:
                if item is None:
                    return None
                ticket.post(item)
            return End(None)
        except OmniError as failure:
            return End(self._translate(failure))
        except Exception as failure:
            logger.exception("work on the step thread failed")
            return End(self._translate(failure))

    def _rejoin(self, ticket: Ticket[Any]) -> None:
        with self._wake:
            self._rotation.join(ticket)
            if ticket.is_cancelled:
                self._rotation.hurry(ticket)


def _once(call: Callable[[], T]) -> Iterator[tuple[T]]:
    """In a tuple, as None would only end the turn."""
    yield (call(),)

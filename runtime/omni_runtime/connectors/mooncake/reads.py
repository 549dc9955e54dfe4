"""Reads of other processes' memory into blocks of the pool.

An engine cannot be told to stop. So a block into which a read runs is the engine's until the read has ended, even if
nobody waits for it any more.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from omni_runtime.connectors.budget import PayloadGoneError
from omni_runtime.connectors.mooncake.engine import NO_BATCH, Engine, Progress
from omni_runtime.connectors.mooncake.pool import Block
from omni_runtime.connectors.mooncake.pooled import ReadFailedError
from omni_runtime.connectors.threads import Threads

THREADS = 8
EAGER_S = 0.000_2
"""For so long a thread that waits gives way but does not sleep: small reads take no longer."""
IMPATIENCE = 0.03
"""Then it sleeps for this part of the time that it has waited, so that a read is noticed at most so much late."""
LONGEST_SLEEP_S = 0.001
LOOK_AFTER_S = 0.05
"""How often reads that nobody waits for are looked after."""


@dataclass(frozen=True)
class Source:
    """Memory of another process."""

    session: str
    address: int


@dataclass(frozen=True)
class Plan:
    """Reads of the first so many bytes, one after the other; after each, what has arrived must be `as_expected`."""

    sizes: Sequence[int]
    as_expected: Callable[[], bool]


@dataclass(frozen=True)
class Attempt:
    progress: Progress
    batch: int
    as_expected: bool = True


class Reads:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._threads = Threads("mooncake-read", THREADS)
        self._abandoned: list[tuple[int, Block]] = []
        self._looking: asyncio.TimerHandle | None = None

    async def read(self, source: Source, block: Block, plan: Plan) -> None:
        """Raises ReadFailedError if the engine fails, PayloadGoneError if it reads something else than expected.

        If this raises or is cancelled, the block is freed, as soon as the engine has let go of it.
        """
        leave = threading.Event()

        def late(future: "asyncio.Future[Attempt]") -> None:
            self._let_go(None if future.cancelled() else future.result(), block)

        try:
            attempt = await self._threads.run(lambda: self._follow(plan, source, block.address, leave), late)
        except asyncio.CancelledError:
            leave.set()
            raise
        if attempt.progress is not Progress.DONE:
            self._let_go(attempt, block)
            raise ReadFailedError
        if not attempt.as_expected:
            block.free()
            raise PayloadGoneError

    @property
    def abandoned(self) -> int:
        """Reads that still run, though nobody waits for them."""
        return len(self._abandoned)

    async def close(self, within_s: float) -> bool:
        """Whether the engine has let go of every block within the time."""
        self._threads.close()
        deadline_s = time.monotonic() + within_s
        while self._abandoned and time.monotonic() < deadline_s:  # noqa: ASYNC110 - the engine sends no event
            await asyncio.sleep(LOOK_AFTER_S)
        if self._looking is not None:
            self._looking.cancel()
        return not self._abandoned

    def _follow(self, plan: Plan, source: Source, address: int, leave: threading.Event) -> Attempt:
        """Runs on a thread; returns when all reads have ended or their caller has left."""
        for size_bytes in plan.sizes:
            attempt = self._attempt(source, address, size_bytes, leave)
            if attempt.progress is not Progress.DONE:
                return attempt
            if not plan.as_expected():
                return Attempt(Progress.DONE, attempt.batch, as_expected=False)
        return attempt

    def _attempt(self, source: Source, address: int, size_bytes: int, leave: threading.Event) -> Attempt:
        batch = self._engine.begin_read(source.session, address, source.address, size_bytes)
        if batch == NO_BATCH:
            return Attempt(Progress.FAILED, batch)
        begun_s = time.monotonic()
        while (progress := self._engine.progress(batch)) is Progress.RUNNING and not leave.is_set():
            waited_s = time.monotonic() - begun_s
            time.sleep(0 if waited_s < EAGER_S else min(waited_s * IMPATIENCE, LONGEST_SLEEP_S))
        return Attempt(progress, batch)

    def _let_go(self, attempt: Attempt | None, block: Block) -> None:
        if attempt is None or attempt.progress is not Progress.RUNNING:
            block.free()
            return
        self._abandoned.append((attempt.batch, block))
        if self._looking is None:
            self._look_again()

    def _look_again(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(LOOK_AFTER_S, self._look_after_abandoned)

    def _look_after_abandoned(self) -> None:
        waiting, self._abandoned, self._looking = self._abandoned, [], None
        for batch, block in waiting:
            self._let_go(Attempt(self._engine.progress(batch), batch), block)

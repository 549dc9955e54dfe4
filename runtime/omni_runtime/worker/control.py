"""What an administrator can do to a worker: let it sleep, wake it, profile it, reset its cache, drain it.

Knows no transport: `control_service.py` offers it over gRPC, `admin.py` over HTTP. `states.py` says what goes when.
"""

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from omni_contract.wire.errors import OmniError
from omni_runtime.engines.protocol import EngineDiedError, Profile, Profiles, ResetsCache, SleepLevel, Sleeps
from omni_runtime.engines.registry import engine_name
from omni_runtime.garbage import keep_what_is_here
from omni_runtime.worker.stage import Stage
from omni_runtime.worker.states import ANSWERED, Call, Event, State

logger = logging.getLogger(__name__)

MAX_PROFILE_STEPS = 1000
"""A trace grows with every step, in memory, and nobody can read a longer one."""

T = TypeVar("T")


class Refusal(StrEnum):
    """Why a call was not carried out; the value is the stable `code` that callers see."""

    INVALID = "invalid_request"
    WRONG_STATE = "wrong_state"
    STILL_BUSY = "still_busy"
    NOT_SUPPORTED = "not_supported"
    FAILED = "failed"


class ControlError(Exception):
    """The call was refused or failed; nothing has changed, unless the message says so."""

    def __init__(self, refusal: Refusal, message: str) -> None:
        super().__init__(message)
        self.refusal = refusal


@dataclass(frozen=True)
class Stats:
    """`failed_total` counts every ending but finished and cancelled."""

    state: State
    sleep_level: int
    is_profiling: bool
    running: int
    waiting: int
    payloads: int
    payload_bytes: int
    requests_total: int
    cancelled_total: int
    failed_total: int


class Control:
    """Its methods raise ControlError. A caller who leaves does not stop half-way what he has begun.

    `profile_dir` is where traces go; without one, profiles are refused.
    """

    def __init__(
        self,
        stage: Stage,
        replica: str,
        profile_dir: Path | None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._stage = stage
        self._replica = replica
        self._profile_dir = profile_dir
        self._now = now
        self._sleep_level = 0
        self._change: asyncio.Task[Any] | None = None
        self._deciding = asyncio.Lock()
        """Held while a call finds out whether it may be, and begins: two at once must not both find that they may."""

    async def sleep(self, level: int, timeout_s: float) -> int:
        """The bytes given back, 0 if it slept already. Takes nothing new at once, and gives up if it stays busy."""
        chosen = _sleep_level(level)
        async with self._deciding:
            engine = self._sleeper(Call.SLEEP)
            if self._stage.state is State.ASLEEP:
                if level != self._sleep_level:
                    raise self._refused(f"is asleep at level {self._sleep_level}; wake it before it sleeps at {level}")
                return 0
            if self._is_profiling:
                raise self._refused("records a profile; stop that before it sleeps")
            self._stage.see(Event.SLEEP)
        return await self._uninterrupted(self._fall_asleep(engine, chosen, timeout_s))

    async def wake(self) -> None:
        """Returns once it takes work; no-op if it is awake."""
        engine = self._sleeper(Call.WAKE)
        if self._stage.state is State.ASLEEP:
            self._stage.see(Event.WAKE)
            await self._uninterrupted(self._wake_up(engine))

    async def start_profile(self, max_steps: int) -> Path:
        """Where the trace will be, once so many steps were taken or the profile is stopped."""
        async with self._deciding:
            engine = self._profiler(Call.START_PROFILE)
            if self._profile_dir is None:
                text = "this worker has no folder for traces; start it with --profile-dir"
                raise ControlError(Refusal.NOT_SUPPORTED, text)
            if not 1 <= max_steps <= MAX_PROFILE_STEPS:
                raise ControlError(Refusal.INVALID, f"steps is {max_steps}; it must be from 1 to {MAX_PROFILE_STEPS}")
            if engine.is_profiling:
                raise self._refused("records a profile already; stop that one first")
            trace = self._profile_dir / f"{self._replica}-{self._now():%Y%m%dT%H%M%S%f}.json.gz"
            await self._begin_profile(engine, trace, max_steps)
        logger.info("recording %d steps for %s", max_steps, trace)
        return trace

    async def stop_profile(self) -> Profile:
        """The newest profile, written whole, whether it is stopped by this or has ended by itself."""
        async with self._deciding:
            engine = self._profiler(Call.STOP_PROFILE)
            try:
                profile = await engine.stop_profile()
            except OSError as error:
                raise ControlError(Refusal.FAILED, f"the trace was not written: {error.strerror}") from error
        if profile is None:
            raise self._refused("records no profile")
        logger.info("recorded %d steps in %s", profile.steps, profile.trace)
        return profile

    async def reset_cache(self) -> int:
        """How many entries were dropped."""
        engine = self._stage.engine
        if not isinstance(engine, ResetsCache):
            raise self._unsupported(Call.RESET_CACHE)
        self._check_state(Call.RESET_CACHE)
        entries = await engine.reset_cache()
        logger.info("cache reset: %d entries dropped", entries)
        return entries

    async def drain(self, timeout_s: float) -> int:
        """The requests that still run or wait when the time is up. The worker never takes work again."""
        self._stage.see(Event.DRAIN)
        try:
            async with asyncio.timeout(timeout_s):
                await self._stage.wait_unneeded()
        except TimeoutError:
            pass
        return self._stage.capacity.running + self._stage.capacity.waiting

    def stats(self) -> Stats:
        stage, census, outcomes = self._stage, self._stage.connectors.census(), self._stage.metrics.outcomes()
        total, cancelled = sum(outcomes.values()), outcomes.get("cancelled", 0)
        return Stats(
            state=stage.state,
            sleep_level=self._sleep_level,
            is_profiling=self._is_profiling,
            running=stage.capacity.running,
            waiting=stage.capacity.waiting,
            payloads=census.payloads,
            payload_bytes=census.size_bytes,
            requests_total=total,
            cancelled_total=cancelled,
            failed_total=total - cancelled - outcomes.get("finished", 0),
        )

    async def close(self) -> None:
        """The process ends: whatever is on its way is dropped."""
        if self._change is not None:
            self._change.cancel()
            await asyncio.wait([self._change])

    @property
    def _is_profiling(self) -> bool:
        engine = self._stage.engine
        return isinstance(engine, Profiles) and engine.is_profiling

    def _sleeper(self, call: Call) -> Sleeps:
        engine = self._stage.engine
        if not isinstance(engine, Sleeps):
            raise self._unsupported(call)
        self._check_state(call)
        return engine

    def _profiler(self, call: Call) -> Profiles:
        engine = self._stage.engine
        if not isinstance(engine, Profiles):
            raise self._unsupported(call)
        self._check_state(call)
        return engine

    def _check_state(self, call: Call) -> None:
        if self._stage.state not in ANSWERED[call]:
            allowed = " or ".join(sorted(ANSWERED[call]))
            raise self._refused(f"is {self._stage.state}; {call} needs one that is {allowed}")

    def _unsupported(self, call: Call) -> ControlError:
        kind = engine_name(self._stage.file)
        return ControlError(Refusal.NOT_SUPPORTED, f'{call}: the {kind} engine of stage "{self._name}" cannot do that')

    async def _begin_profile(self, engine: Profiles, trace: Path, max_steps: int) -> None:
        try:
            trace.parent.mkdir(parents=True, exist_ok=True)
            await engine.start_profile(trace, max_steps)
        except OSError as error:
            raise ControlError(
                Refusal.FAILED, f"no trace can be written to {trace.parent}: {error.strerror}"
            ) from error

    async def _uninterrupted(self, change: Coroutine[Any, Any, T]) -> T:
        self._change = task = asyncio.create_task(change)
        return await asyncio.shield(task)

    async def _fall_asleep(self, engine: Sleeps, level: SleepLevel, timeout_s: float) -> int:
        event = Event.CALLED_OFF
        try:
            await self._until_idle(timeout_s)
            # What loading froze must be thrown away now.
            gc.unfreeze()
            freed = await self._changed(engine.sleep(level))
            event, self._sleep_level = Event.SLEPT, level
        finally:
            self._stage.see(event)
        logger.info("asleep at level %d: %.3g GiB given back", level, freed / 2**30)
        return freed

    async def _until_idle(self, timeout_s: float) -> None:
        capacity = self._stage.capacity
        try:
            async with asyncio.timeout(timeout_s):
                await capacity.wait_idle()
        except TimeoutError:
            left = capacity.running + capacity.waiting
            text = f'stage "{self._name}" still has {left} requests after {timeout_s:g} s; it goes on as before'
            raise ControlError(Refusal.STILL_BUSY, text) from None
        if self._stage.state is not State.SETTLING:
            raise self._refused(f"is {self._stage.state} by now")

    async def _wake_up(self, engine: Sleeps) -> None:
        event = Event.WAKE_FAILED
        try:
            await self._changed(engine.wake(lambda line: logger.info("%s", line)))
            keep_what_is_here()
            event, self._sleep_level = Event.WOKEN, 0
        finally:
            self._stage.see(event)
        logger.info("awake")

    async def _changed(self, change: Coroutine[Any, Any, T]) -> T:
        try:
            return await change
        except EngineDiedError as error:
            self._stage.engine_died(error)
            raise ControlError(Refusal.FAILED, f'the engine of stage "{self._name}" died: {error}') from error
        except OmniError as error:
            raise ControlError(Refusal.FAILED, f'stage "{self._name}": {error.message}') from error

    def _refused(self, text: str) -> ControlError:
        return ControlError(Refusal.WRONG_STATE, f'stage "{self._name}" {text}')

    @property
    def _name(self) -> str:
        return self._stage.file.stage


def _sleep_level(level: int) -> SleepLevel:
    if level == 1:
        return 1
    if level == 2:
        return 2
    raise ControlError(
        Refusal.INVALID, f"level is {level}; it must be 1 (weights to host memory) or 2 (weights dropped)"
    )

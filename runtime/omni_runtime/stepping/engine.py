"""The life of an engine whose torch work runs on a step thread: load, sleep, wake, profile, close. `run` is its own."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

import torch

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.engines.protocol import Profile, SleepLevel
from omni_runtime.stepping.errors import translate
from omni_runtime.stepping.resident import Loading, ResidentModel, StageModel
from omni_runtime.stepping.step_profile import StepProfile, watched
from omni_runtime.stepping.step_thread import StepThread, Ticket

M = TypeVar("M", bound=StageModel)
T = TypeVar("T")
Turns: TypeAlias = AbstractAsyncContextManager[Ticket[T]]


@dataclass(frozen=True)
class StageLimits:
    """Whose engine it is, and how many requests it takes at once."""

    stage: str
    max_in_flight: int


class SteppingEngine(Generic[M]):
    """`load` is work for the thread that returns the model; what runs requests asks `_admitted` for it."""

    def __init__(self, limits: StageLimits, load: Callable[[], Loading[M]], device: torch.device) -> None:
        self._limits = limits
        self._device = device
        self._thread = StepThread(f"steps-{limits.stage}", _prepare_thread, translate)
        self._model: ResidentModel[M] = ResidentModel(load, device)
        self._profile: StepProfile | None = None
        self._in_flight = 0

    async def load(self, report: Callable[[str], None]) -> None:
        self._thread.start()
        try:
            await self._reported(self._model.load_turns(), report)
        except OmniError as error:
            raise _about_weights(error) from error

    async def sleep(self, level: SleepLevel) -> int:
        try:
            return await self._thread.call(lambda: self._model.rest(level))
        except OmniError as error:
            await self._thread.call(self._model.undo_rest)
            raise _about_weights(error) from error

    async def wake(self, report: Callable[[str], None]) -> None:
        try:
            await self._reported(self._model.wake_turns(), report)
        except OmniError as error:
            await self._thread.call(self._model.undo_wake)
            raise _about_weights(error) from error

    @property
    def weights_bytes(self) -> int:
        return self._model.weights_bytes

    @property
    def is_profiling(self) -> bool:
        return self._profile is not None and self._profile.is_recording

    async def start_profile(self, trace: Path, max_steps: int) -> None:
        profile = StepProfile(trace, max_steps, self._device)
        await self._thread.call(profile.start)
        self._profile = profile

    async def stop_profile(self) -> Profile | None:
        profile, self._profile = self._profile, None
        if profile is None:
            return None
        await self._thread.call(profile.finish)
        return profile.result()

    def heartbeat_age_s(self) -> float:
        return self._thread.heartbeat_age_s() if self._model.ready is not None else 0.0

    async def close(self) -> None:
        if self._profile is not None and self._thread.is_alive:
            await self._thread.call(self._profile.finish)
        await self._thread.stop()
        self._model.forget()

    def _admitted(self) -> M:
        """The model, for one request more; OmniError if there is none or no room."""
        self._thread.check_alive()
        if self._model.ready is None:
            raise OmniError(ErrorCode.STAGE_UNAVAILABLE, f'stage "{self._limits.stage}" has not loaded its model')
        if self._in_flight >= self._limits.max_in_flight:
            text = f'stage "{self._limits.stage}" is full: {self._in_flight} requests in flight'
            raise OmniError(ErrorCode.OVERLOADED, text)
        return self._model.ready

    @asynccontextmanager
    async def _turns(self, work: Iterator[T | None], name: str) -> AsyncIterator[Ticket[T]]:
        """A request's place on the thread; however the block ends, the thread has dropped the work when it is left."""
        self._in_flight += 1
        ticket: Ticket[T] = self._thread.submit(watched(work, name, self._recording))
        try:
            yield ticket
        finally:
            self._thread.cancel(ticket)
            try:
                await ticket.ended()
            finally:
                self._in_flight -= 1

    def _recording(self) -> StepProfile | None:
        return self._profile if self.is_profiling else None

    async def _reported(self, work: Iterator[str | None], report: Callable[[str], None]) -> None:
        self._thread.check_alive()
        ticket: Ticket[str] = self._thread.submit(work)
        async for line in ticket.items():
            report(line)


def _about_weights(error: OmniError) -> OmniError:
    """While no request runs, it is the weights that memory does not suffice for."""
    if error.code is ErrorCode.OUT_OF_MEMORY:
        return OmniError(error.code, "the device, or host memory, has too little room for the model's weights")
    return error


def _prepare_thread() -> None:
    torch.set_grad_enabled(False)

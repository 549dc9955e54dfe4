"""The diffusion engine: a stage's phases on a step thread, behind the protocol that the worker drives."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from omni_contract.api.v1alpha1 import DiffusionPhase
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.names import FINAL
from omni_runtime.diffusion.errors import translate
from omni_runtime.diffusion.loading import LoadPlan
from omni_runtime.diffusion.pipeline import PhasePipeline, Turned
from omni_runtime.diffusion.request import parse_image_request
from omni_runtime.diffusion.resident import ResidentModel
from omni_runtime.diffusion.step_profile import StepProfile, watched
from omni_runtime.diffusion.step_thread import StepThread, Ticket
from omni_runtime.engines.protocol import (
    Profile,
    SleepLevel,
    StageEvent,
    StageOutput,
    StageProgress,
    StageRequest,
    StageUsage,
)
from omni_runtime.families.protocol import DiffusionFamily


@dataclass(frozen=True)
class DiffusionSettings:
    stage: str
    family: DiffusionFamily
    phases: tuple[DiffusionPhase, ...]
    plan: LoadPlan
    max_in_flight: int


class DiffusionEngine:
    """Serves up to `max_in_flight` requests in fair rotation, one denoising step each."""

    def __init__(self, settings: DiffusionSettings) -> None:
        self._settings = settings
        self._thread = StepThread(f"steps-{settings.stage}", _prepare_thread, translate)
        self._model = ResidentModel(settings.family, settings.phases, settings.plan)
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
    def is_profiling(self) -> bool:
        return self._profile is not None and self._profile.is_recording

    async def start_profile(self, trace: Path, max_steps: int) -> None:
        profile = StepProfile(trace, max_steps, self._settings.plan.device)
        await self._thread.call(profile.start)
        self._profile = profile

    async def stop_profile(self) -> Profile | None:
        profile, self._profile = self._profile, None
        if profile is None:
            return None
        await self._thread.call(profile.finish)
        return profile.result()

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        pipeline = self._admit()
        image = parse_image_request(request, self._settings.family.limits)
        if image.prompt is None and "encode" in self._settings.phases:
            raise OmniError(ErrorCode.INVALID_REQUEST, "the prompt is missing", "prompt")
        payloads = tuple(payload for edge, payload in request.inputs.items() if edge != FINAL)
        async with self._turns(pipeline.turns(image, payloads), request.request_id) as ticket:
            usage = StageUsage()
            async for item in ticket.items():
                if isinstance(item, StageProgress):
                    usage = replace(usage, steps=item.step)
                    yield item
                    continue
                usage = replace(usage, input_tokens=item.input_tokens, output_tokens=item.output_tokens)
                for edge in request.outputs:
                    yield StageOutput(edge, item.payload)
            yield replace(usage, compute_seconds=ticket.busy_s)

    def heartbeat_age_s(self) -> float:
        return self._thread.heartbeat_age_s() if self._model.pipeline is not None else 0.0

    async def close(self) -> None:
        if self._profile is not None and self._thread.is_alive:
            await self._thread.call(self._profile.finish)
        await self._thread.stop()
        self._model.forget()

    def _admit(self) -> PhasePipeline:
        self._thread.check_alive()
        if self._model.pipeline is None:
            raise OmniError(ErrorCode.STAGE_UNAVAILABLE, f'stage "{self._settings.stage}" has not loaded its model')
        if self._in_flight >= self._settings.max_in_flight:
            text = f'stage "{self._settings.stage}" is full: {self._in_flight} requests in flight'
            raise OmniError(ErrorCode.OVERLOADED, text)
        return self._model.pipeline

    @asynccontextmanager
    async def _turns(self, work: Iterator[Turned | None], name: str) -> AsyncIterator[Ticket[Turned]]:
        """The work's place on the thread; however the block ends, the thread has dropped the work when it is left."""
        self._in_flight += 1
        ticket: Ticket[Turned] = self._thread.submit(watched(work, name, self._recording))
        try:
            yield ticket
        finally:
            self._thread.cancel(ticket)
            try:
                await ticket.ended()
            finally:
                self._in_flight -= 1

    async def _reported(self, work: Iterator[str | None], report: Callable[[str], None]) -> None:
        self._thread.check_alive()
        ticket: Ticket[str] = self._thread.submit(work)
        async for line in ticket.items():
            report(line)

    def _recording(self) -> StepProfile | None:
        return self._profile if self.is_profiling else None


def _about_weights(error: OmniError) -> OmniError:
    """While no request runs, it is the weights that memory does not suffice for."""
    if error.code is ErrorCode.OUT_OF_MEMORY:
        return OmniError(error.code, "the device, or host memory, has too little room for the model's weights")
    return error


def _prepare_thread() -> None:
    torch.set_grad_enabled(False)

"""The diffusion engine: a stage's phases on a step thread, behind the protocol that the worker drives."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import torch

from omni_contract.api.v1alpha1 import DiffusionPhase
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.names import FINAL
from omni_runtime.diffusion.errors import translate
from omni_runtime.diffusion.loading import LoadPlan, load_blocks
from omni_runtime.diffusion.pipeline import PhasePipeline, Turned
from omni_runtime.diffusion.request import parse_image_request
from omni_runtime.diffusion.step_thread import StepThread, Ticket
from omni_runtime.engines.protocol import (
    EngineDiedError,
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
        self._pipeline: PhasePipeline | None = None
        self._in_flight = 0

    async def load(self, report: Callable[[str], None]) -> None:
        self._thread.start()
        ticket: Ticket[str] = self._thread.submit(self._load_turns())
        async for line in ticket.items():
            report(line)

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        pipeline = self._admit()
        image = parse_image_request(request, self._settings.family.limits)
        if image.prompt is None and "encode" in self._settings.phases:
            raise OmniError(ErrorCode.INVALID_REQUEST, "the prompt is missing", "prompt")
        payloads = tuple(payload for edge, payload in request.inputs.items() if edge != FINAL)
        async with self._turns(pipeline.turns(image, payloads)) as ticket:
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
        return self._thread.heartbeat_age_s() if self._pipeline is not None else 0.0

    async def close(self) -> None:
        await self._thread.stop()
        self._pipeline = None

    def _admit(self) -> PhasePipeline:
        if not self._thread.is_alive:
            raise EngineDiedError(f'the step thread of stage "{self._settings.stage}" has ended')
        if self._pipeline is None:
            raise OmniError(ErrorCode.STAGE_UNAVAILABLE, f'stage "{self._settings.stage}" has not loaded its model')
        if self._in_flight >= self._settings.max_in_flight:
            text = f'stage "{self._settings.stage}" is full: {self._in_flight} requests in flight'
            raise OmniError(ErrorCode.OVERLOADED, text)
        return self._pipeline

    @asynccontextmanager
    async def _turns(self, work: Iterator[Turned | None]) -> AsyncIterator[Ticket[Turned]]:
        """The work's place on the thread; however the block ends, the thread has dropped the work when it is left."""
        self._in_flight += 1
        ticket: Ticket[Turned] = self._thread.submit(work)
        try:
            yield ticket
        finally:
            self._thread.cancel(ticket)
            try:
                await ticket.ended()
            finally:
                self._in_flight -= 1

    def _load_turns(self) -> Iterator[str | None]:
        settings = self._settings
        blocks = yield from load_blocks(settings.family, settings.phases, settings.plan)
        pipeline = PhasePipeline(settings.family, settings.phases, blocks, settings.plan.device)
        yield "running a self-test"
        for _ in pipeline.probe_turns():
            pass
        self._pipeline = pipeline


def _prepare_thread() -> None:
    torch.set_grad_enabled(False)

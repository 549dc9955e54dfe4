"""The diffusion engine: a stage's phases on a step thread, behind the protocol that the worker drives."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from omni_contract.api.v1alpha1 import DiffusionPhase
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.names import FINAL
from omni_runtime.diffusion.loading import load_blocks
from omni_runtime.diffusion.pipeline import PhasePipeline, Turned
from omni_runtime.diffusion.request import parse_image_request
from omni_runtime.engines.protocol import StageEvent, StageOutput, StageProgress, StageRequest, StageUsage
from omni_runtime.families.protocol import DiffusionFamily
from omni_runtime.stepping.engine import StageLimits, SteppingEngine, Turns
from omni_runtime.stepping.loading import LoadPlan
from omni_runtime.stepping.resident import Loading


@dataclass(frozen=True)
class DiffusionSettings:
    limits: StageLimits
    family: DiffusionFamily
    phases: tuple[DiffusionPhase, ...]
    plan: LoadPlan


class DiffusionEngine(SteppingEngine[PhasePipeline]):
    """Serves up to `max_in_flight` requests in fair rotation, one denoising step each."""

    def __init__(self, settings: DiffusionSettings) -> None:
        super().__init__(settings.limits, lambda: _load(settings), settings.plan.device)
        self._settings = settings

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        pipeline = self._admitted()
        image = parse_image_request(request, self._settings.family.limits)
        if image.prompt is None and "encode" in self._settings.phases:
            raise OmniError(ErrorCode.INVALID_REQUEST, "the prompt is missing", "prompt")
        payloads = tuple(payload for edge, payload in request.inputs.items() if edge != FINAL)
        turns: Turns[Turned] = self._turns(pipeline.turns(image, payloads), request.request_id)
        async with turns as ticket:
            usage = StageUsage()
            async for item in ticket.items():
                if isinstance(item, StageProgress):
                    usage = replace(usage, steps=item.step)
                    yield item
                    continue
                usage = StageUsage(item.input_tokens, item.output_tokens, usage.steps, 0.0, item.postprocess_s)
                for edge in request.outputs:
                    yield StageOutput(edge, item.payload)
            yield replace(usage, compute_seconds=ticket.busy_s)


def _load(settings: DiffusionSettings) -> Loading[PhasePipeline]:
    blocks = yield from load_blocks(settings.family, settings.phases, settings.plan)
    return PhasePipeline(settings.family, settings.phases, blocks, settings.plan.device)

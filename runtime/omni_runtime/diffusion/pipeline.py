"""The loaded blocks of a stage, and one request's way through them, one turn at a time.

With `loading.py` the only module that knows how diffusers runs modular blocks. Not thread-safe: everything happens on
the step thread. A request owns its scheduler, guider, generator and state, so that neighbours cannot disturb it.
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeAlias

import torch
from diffusers import ClassifierFreeGuidance, ModularPipeline
from diffusers.modular_pipelines.modular_pipeline import PipelineState

from omni_contract.api.v1alpha1 import DiffusionPhase
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload
from omni_runtime.diffusion.loading import modules_of
from omni_runtime.diffusion.request import ImageRequest
from omni_runtime.engines.protocol import StageProgress
from omni_runtime.families.protocol import DiffusionFamily
from omni_runtime.stepping.tensors import to_payload, to_tensors


@dataclass(frozen=True)
class StageResult:
    payload: Payload
    input_tokens: int
    output_tokens: int
    postprocess_s: float
    """To bring it to the host, ready to travel."""


Turned: TypeAlias = StageProgress | StageResult
"""What comes out on the way: each step's progress, and at last the stage's result."""
PHASES: tuple[DiffusionPhase, ...] = ("encode", "denoise", "decode")


class PhasePipeline:
    def __init__(
        self, family: DiffusionFamily, phases: tuple[DiffusionPhase, ...], blocks: ModularPipeline, device: torch.device
    ) -> None:
        self._family = family
        self._phases = phases
        self._blocks = blocks
        self._device = device

    @property
    def modules(self) -> list[torch.nn.Module]:
        return modules_of(self._blocks)

    def turns(self, request: ImageRequest, payloads: tuple[Payload, ...]) -> Iterator[Turned | None]:
        """Work for the step thread: a turn is one denoising step, or another phase whole. The result comes last."""
        components, state = self._begin(request, payloads)
        for phase in self._phases:
            components.guider = self._guider(request, state)
            blocks = self._family.blocks(phase)
            self._call(blocks.before, components, state)
            if blocks.loop is not None:
                yield from self._loop(blocks.loop, components, state)
            _require_finite(phase, state.values)
            self._call(blocks.after, components, state)
            if phase != self._phases[-1]:
                yield None
        selected = self._family.select(self._phases[-1], state.values)
        began_s = monotonic()
        payload = to_payload(selected)
        yield StageResult(payload, *self._tokens(request), postprocess_s=monotonic() - began_s)

    def test_turns(self) -> Iterator[Turned | None]:
        """A real request at a small size and with few steps, on made-up input if the stage is not the first."""
        limits = self._family.limits
        request = ImageRequest(
            prompt="self-test",
            negative_prompt=" ",
            width=4 * limits.size_multiple,
            height=4 * limits.size_multiple,
            steps=2,
            guidance_scale=2.0,
            seed=0,
            max_sequence_length=limits.default_sequence_length,
        )
        probe = to_payload(self._family.probe(self._phases[0], self._blocks))
        return self.turns(request, (probe,) if probe else ())

    def _begin(self, request: ImageRequest, payloads: tuple[Payload, ...]) -> tuple[ModularPipeline, PipelineState]:
        components = copy.copy(self._blocks)
        if "denoise" in self._phases:
            scheduler = self._blocks.scheduler
            components.scheduler = type(scheduler).from_config(scheduler.config)
        state = PipelineState()
        # On the CPU, so that a seed means the same picture on every device.
        state.set("generator", torch.Generator("cpu").manual_seed(request.seed))
        for name, value in {**self._family.block_inputs(request), **self._adapted(payloads)}.items():
            state.set(name, value)
        return components, state

    def _adapted(self, payloads: tuple[Payload, ...]) -> Mapping[str, object]:
        first = PHASES.index(self._phases[0])
        if first == 0:
            return {}
        tensors = {name: t for payload in payloads for name, t in to_tensors(payload, self._device).items()}
        return self._family.adapt(PHASES[first - 1], tensors)

    def _tokens(self, request: ImageRequest) -> tuple[int, int]:
        """Input and output tokens; each is counted by the one stage that runs the phase."""
        counted_in = self._family.input_tokens(request, self._blocks) if "encode" in self._phases else 0
        counted_out = self._family.output_tokens(request) if "denoise" in self._phases else 0
        return counted_in, counted_out

    def _guider(self, request: ImageRequest, state: PipelineState) -> ClassifierFreeGuidance:
        is_guided = self._family.is_guided(request, state.values)
        return ClassifierFreeGuidance(guidance_scale=request.guidance_scale, enabled=is_guided)

    def _call(self, names: tuple[str, ...], components: ModularPipeline, state: PipelineState) -> None:
        for name in names:
            self._blocks.blocks.sub_blocks[name](components, state)

    def _loop(self, name: str, components: ModularPipeline, state: PipelineState) -> Iterator[StageProgress | None]:
        block = self._blocks.blocks.sub_blocks[name]
        loop_state: Any = block.get_block_state(state)
        self._family.begin_loop(loop_state)
        _require_schedule(loop_state.timesteps)
        total = len(loop_state.timesteps)
        for step, timestep in enumerate(loop_state.timesteps):
            if step > 0:
                yield None
            block.loop_step(components, loop_state, i=step, t=timestep)
            yield StageProgress(step + 1, total)
        block.set_block_state(state, loop_state)


def _require_finite(phase: DiffusionPhase, values: Mapping[str, object]) -> None:
    """Without it, an overflow in a narrow dtype would be a black picture."""
    for name, value in values.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point() and not value.isfinite().all():
            text = f'phase "{phase}" made "{name}" with values that are not finite in {value.dtype}'
            raise OmniError(ErrorCode.STAGE_FAILED, f"{text}; a wider dtype may help")


def _require_schedule(timesteps: torch.Tensor) -> None:
    """A schedule stretched to a terminal value divides by zero if it has one step; one for a huge picture overflows."""
    if not timesteps.isfinite().all():
        text = f'parameter "steps" is {len(timesteps)}; the model\'s schedule needs more steps, or a smaller picture'
        raise OmniError(ErrorCode.INVALID_REQUEST, text, "steps")

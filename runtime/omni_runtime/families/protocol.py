"""What a model family tells the engines: how its parts run, what leaves a stage, what a stage takes in.

A family has one optional part per engine kind, so that a model with unlike stages is still one folder.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from omni_contract.api.v1alpha1 import DiffusionPhase

if TYPE_CHECKING:
    from diffusers.modular_pipelines import ModularPipelineBlocks
    from torch import Tensor

    from omni_runtime.diffusion.request import ImageLimits, ImageRequest
    from omni_runtime.generation.decoder import Decoder
    from omni_runtime.stepping.loading import LoadPlan
    from omni_runtime.stepping.resident import Loading
    from omni_runtime.talking.talker import Talker

Tensors: TypeAlias = "Mapping[str, Tensor]"
Components: TypeAlias = Any
"""A diffusers pipeline object; its loaded components are attributes (`transformer`, `vae`, `tokenizer` …)."""
Report: TypeAlias = Callable[[str], None]
"""Called with one line per step of a longer job."""


@dataclass(frozen=True)
class PhaseBlocks:
    """The blocks of one phase, by their names in the family's workflow.

    `loop` is the one that repeats per step. Before the `after` blocks the engine checks that all values are finite.
    """

    before: tuple[str, ...]
    loop: str | None = None
    after: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.before, *((self.loop,) if self.loop else ()), *self.after)


class DiffusionFamily(Protocol):
    """The diffusion part of a family; its methods run on the engine's step thread."""

    @property
    def pipeline(self) -> str:
        """The class that `model_index.json` of the family's checkpoints names."""
        ...

    @property
    def limits(self) -> "ImageLimits": ...

    def workflow(self) -> "ModularPipelineBlocks":
        """The family's flat diffusers blocks, from prompt to picture."""
        ...

    def blocks(self, phase: DiffusionPhase) -> PhaseBlocks: ...

    def block_inputs(self, request: "ImageRequest") -> Mapping[str, object]:
        """The request in the words of the family's blocks, for all phases."""
        ...

    def is_guided(self, request: "ImageRequest", values: Mapping[str, object]) -> bool:
        """Whether the unconditional branch runs too; `values` is what earlier phases produced."""
        ...

    def begin_loop(self, loop_state: Any) -> None:
        """Prepare the loop block's state; the first step follows."""
        ...

    def select(self, phase: DiffusionPhase, values: Mapping[str, Any]) -> Tensors:
        """What leaves a stage whose last phase is `phase`; after decode the picture: `image`, uint8 (H, W, 3)."""
        ...

    def adapt(self, phase: DiffusionPhase, tensors: Tensors) -> Mapping[str, object]:
        """Block inputs of the phases after `phase`, from what another stage selected; OmniError if something lacks."""
        ...

    def probe(self, phase: DiffusionPhase, components: Components) -> Tensors:
        """Made-up input for a stage that starts with `phase`, for the self-test; as `select` of the phase before it."""
        ...

    def input_tokens(self, request: "ImageRequest", components: Components) -> int:
        """What the prompt counts for; asked once, where it is encoded."""
        ...

    def output_tokens(self, request: "ImageRequest") -> int:
        """What the picture counts for; asked once, where it is denoised."""
        ...


class GenerationFamily(Protocol):
    """The part of a family that makes samples of codes."""

    def load(self, plan: "LoadPlan") -> "Loading[Decoder]":
        """Work for the step thread; it returns the codec."""
        ...


class TalkerFamily(Protocol):
    """The part of a family that says codes for what its thinker says in words."""

    def load(self, plan: "LoadPlan") -> "Loading[Talker]":
        """Work for the step thread; it returns the talker."""
        ...


class Family(Protocol):
    @property
    def diffusion(self) -> DiffusionFamily | None: ...

    @property
    def generation(self) -> GenerationFamily | None: ...

    @property
    def talker(self) -> TalkerFamily | None: ...

    def build_tiny(self, folder: Path, seed: int, report: Report) -> None:
        """Write a small random-weight checkpoint that the real loading code reads; same seed, same bytes."""
        ...

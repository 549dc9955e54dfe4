"""What a model family tells the engines: how its parts run, what leaves a stage, what a stage takes in.

A family has one optional part per engine kind, so that a model with unlike stages is still one folder.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from omni_contract.api.v1alpha1 import DiffusionPhase
from omni_contract.wire.payload import Array, Payload, Value

if TYPE_CHECKING:
    from diffusers.modular_pipelines import ModularPipelineBlocks
    from torch import Tensor

    from omni_runtime.diffusion.request import ImageLimits, ImageRequest
    from omni_runtime.engines.protocol import StageRequest
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


@dataclass(frozen=True)
class TransformersPart:
    """How transformers reads a part of the family's checkpoint: the class, and what the whole calls the part."""

    architecture: str
    name: str


@dataclass(frozen=True)
class ArModel:
    """How vLLM reads a part of the family's checkpoint.

    `config` turns the configuration of the whole into the part's; it is a function of a module, as other processes
    import it. `implementation` is our class for an `architecture`, as "module:Class": one that vLLM does not know or,
    where it `refines`, one of vLLM's own, which stands in for it where there are several devices.
    `hidden_layers` are those whose states other stages need, counted as in transformers' `hidden_states`: 0 is the
    input's embeddings, -1 the last one; or a function of the checkpoint's folder that says which. A part that
    `takes_rows` has rows of embeddings as its input, not tokens. One that `makes_frames` makes of each token a frame
    of codes, which its next step reads and which leaves with it.
    """

    config: Callable[[Any], Any] | None = None
    architecture: str | None = None
    implementation: str | None = None
    hidden_layers: tuple[int, ...] | Callable[[Path], tuple[int, ...]] = ()
    takes_rows: bool = False
    makes_frames: bool = False
    refines: bool = False
    defaults: Mapping[str, Value] = field(default_factory=dict)
    """Of sampling parameters, under what the model file and the request say."""
    text: TransformersPart | None = None
    """Where backend `transformers` can make the part's text."""


class RowKind(IntEnum):
    """What a row is to the embedding of its token: in its place, that of a medium or of a word, or on top of it."""

    WORD = 0
    MEDIUM = 1
    ADDED = 2


@dataclass(frozen=True)
class PromptRows:
    """What such a part begins with: a row for each token. Unless `kinds` says otherwise, all are words.

    Penalties count the tokens, too. `positions`, of shape (tokens, 3), are in time, height and width; without them, the
    tokens are counted.
    """

    token_ids: tuple[int, ...]
    rows: Array
    kinds: tuple[RowKind, ...] = ()
    positions: Array | None = None


@dataclass(frozen=True)
class NextRows:
    """Rows for the tokens that follow, one for each, on top of their embeddings. The last one of all holds for ever."""

    rows: Array


RowSource: TypeAlias = AsyncGenerator[PromptRows | NextRows, None]
"""First what the part begins with, then what comes, as it comes."""


class ArPart(Protocol):
    """A part of the family that makes tokens one after another, opened for one checkpoint."""

    @property
    def stop_token_ids(self) -> tuple[int, ...]:
        """Beyond those that the checkpoint's own configuration names."""
        ...

    def select(self, item: Payload) -> Payload:
        """What leaves for other stages with a step.

        The item has `token_ids`, `text` if the part has a tokenizer, `hidden` with the rows of each layer by its
        number, and in the first step `prompt_token_ids`, and `prompt_positions`, of shape (tokens, 3), if there are
        media in the prompt; a token's own row comes with the step after it. If the part makes frames, the item has
        them as `frames`, of shape (frames, groups), instead of all else.
        """
        ...


@runtime_checkable
class RowPart(ArPart, Protocol):
    """A part that takes rows."""

    def rows(self, request: "StageRequest", parameters: Mapping[str, Value]) -> RowSource:
        """Its input for one request; raises OmniError if something is wrong with what came."""
        ...


class ArFamily(Protocol):
    """The parts of a family that an ar engine runs."""

    @property
    def models(self) -> Mapping[str, ArModel]:
        """By the parts' names."""
        ...

    def open(self, part: str, folder: Path, is_dummy: bool) -> ArPart:
        """Reads what the part needs beside the model, on the engine's thread; makes it up if the weights are, too."""
        ...


class Family(Protocol):
    @property
    def ar(self) -> ArFamily | None: ...

    @property
    def diffusion(self) -> DiffusionFamily | None: ...

    @property
    def generation(self) -> GenerationFamily | None: ...

    @property
    def talker(self) -> TalkerFamily | None: ...

    def build_tiny(self, folder: Path, seed: int, report: Report) -> None:
        """Write a small random-weight checkpoint that the real loading code reads; same seed, same bytes."""
        ...


@runtime_checkable
class VariedFamily(Family, Protocol):
    """A family whose checkpoints are of several kinds."""

    @property
    def variants(self) -> tuple[str, ...]:
        """Their names; `build_tiny` makes the first."""
        ...

    def build_tiny_variant(self, variant: str, folder: Path, seed: int, report: Report) -> None: ...

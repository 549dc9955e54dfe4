"""Engine blocks: which engine a stage runs and how. Exactly one block is set on a stage."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from omni_contract.api.v1alpha1.base import ApiModel

DiffusionPhase = Literal["encode", "denoise", "decode"]
DIFFUSION_PHASES: tuple[DiffusionPhase, ...] = ("encode", "denoise", "decode")


class DiffusionEngine(ApiModel):
    """A diffusion model's stage: a contiguous part of encode, denoise, decode."""

    kind: ClassVar[Literal["diffusion"]] = "diffusion"

    phases: Annotated[tuple[DiffusionPhase, ...], Field(min_length=1, max_length=3)] = Field(
        DIFFUSION_PHASES,
        description="The part of encode, denoise, decode that this stage runs, in that order and without a gap; all "
        "three make a fused stage.",
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="Number format of the weights in memory; auto takes the checkpoint's own."
    )


class FakeEngine(ApiModel):
    """A stage without a model, for protocol, load and fault tests; only where the administrator allows it."""

    kind: ClassVar[Literal["fake"]] = "fake"

    behavior: Literal["echo", "delay", "burst", "relay", "stall", "crash", "leak"] = Field(
        "echo",
        description="What the stage does with a request: hand it on (echo), hand it on later (delay), make an item in "
        "each step (burst), hand on each item as it comes, in a step of its own (relay), never answer (stall), end its "
        "process (crash), or keep what it should free (leak).",
    )
    delay_seconds: Annotated[float, Field(ge=0, le=3600)] = Field(0.0, description="How long each step takes.")
    steps: Annotated[int, Field(ge=1, le=10_000)] = Field(
        1,
        description="Number of steps per request, unless its parameter steps asks for another one; a cancel takes "
        "effect between two of them.",
    )
    serial: bool = Field(
        False, description="Whether the steps of concurrent requests take turns, as they do on one device."
    )
    crash_at: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        None, description="The request, counted from 0, at which a stage with behavior crash ends its process."
    )


EngineBlock: TypeAlias = DiffusionEngine | FakeEngine
EngineKind: TypeAlias = Literal["diffusion", "fake"]
ENGINE_FIELDS: tuple[EngineKind, ...] = ("diffusion", "fake")
"""The stage's fields of which exactly one is set."""

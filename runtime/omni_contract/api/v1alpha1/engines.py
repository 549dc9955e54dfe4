"""Engine blocks: which engine a stage runs and how. Exactly one block is set on a stage."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from omni_contract.api.v1alpha1.base import ApiModel

DiffusionPhase = Literal["encode", "denoise", "decode"]


class DiffusionEngine(ApiModel):
    """A diffusion model's stage: a contiguous part of encode, denoise, decode."""

    phases: Annotated[tuple[DiffusionPhase, ...], Field(min_length=1, max_length=3)] = ("encode", "denoise", "decode")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"


class FakeEngine(ApiModel):
    """A stage without a model, for protocol, load and fault tests; only where the administrator allows it."""

    behavior: Literal["echo", "delay", "stall", "crash", "leak"] = "echo"
    delay_seconds: Annotated[float, Field(ge=0, le=3600)] = 0.0
    steps: Annotated[int, Field(ge=1, le=10_000)] = 1
    crash_at: Annotated[int | None, Field(ge=0, le=1_000_000)] = None


EngineBlock: TypeAlias = DiffusionEngine | FakeEngine

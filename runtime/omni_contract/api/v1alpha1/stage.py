"""One stage of a model: its engine, its device, its size."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from omni_contract.api.v1alpha1.base import ApiModel, PoolName, Quantity, Seconds, StageName
from omni_contract.api.v1alpha1.engines import DiffusionEngine, EngineBlock, FakeEngine


class AcceleratorSpec(ApiModel):
    """The devices of each replica."""

    pool: PoolName | None = None
    count: Annotated[int, Field(ge=0, le=64)] | None = None


class ResourcesSpec(ApiModel):
    """CPU and memory of each replica; devices come from the accelerator."""

    cpu: Quantity | None = None
    memory: Quantity | None = None


class OutputSpec(ApiModel):
    """What a stage gives the client."""

    modality: Literal["text", "image", "audio", "video"]
    final: bool = True


class DrainSpec(ApiModel):
    timeout_seconds: Seconds = 60


class ShmSpec(ApiModel):
    size: Quantity = "64Mi"


class StageSpec(ApiModel):
    name: StageName
    diffusion: DiffusionEngine | None = None
    fake: FakeEngine | None = None
    output: OutputSpec | None = None
    replicas: Annotated[int, Field(ge=0, le=1000)] = 1
    accelerator: AcceleratorSpec = AcceleratorSpec()
    resources: ResourcesSpec = ResourcesSpec()
    sampling: dict[str, JsonValue] = Field(default_factory=dict)
    max_in_flight: Annotated[int, Field(ge=1, le=4096)] | None = None
    max_batch_size: Annotated[int, Field(ge=1, le=1024)] = 1
    batch_timeout_seconds: Annotated[float, Field(ge=0, le=60)] = 0.0
    shm: ShmSpec = ShmSpec()
    drain: DrainSpec = DrainSpec()
    startup_timeout_seconds: Seconds = 600
    template: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def engine(self) -> EngineBlock | None:
        """The engine block that is set; None if the family's preset gives it."""
        return self.diffusion or self.fake

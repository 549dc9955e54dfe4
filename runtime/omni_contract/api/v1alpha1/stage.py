"""One stage of a model: its engine, its device, its size."""

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from omni_contract.api.v1alpha1.autoscaling import AutoscalingSpec
from omni_contract.api.v1alpha1.base import ApiModel, ListSet, PoolName, Quantity, Seconds, StageName
from omni_contract.api.v1alpha1.engines import ArEngine, DiffusionEngine, EngineBlock, FakeEngine, GenerationEngine
from omni_contract.api.v1alpha1.monitoring import LogLevel, ProfilesSpec

DeviceNumber = Annotated[int, Field(ge=0, le=63)]
DeviceNumbers = Annotated[tuple[DeviceNumber, ...], Field(min_length=1, max_length=64), ListSet()]


class AcceleratorSpec(ApiModel):
    """The devices of each replica."""

    pool: PoolName | None = Field(
        None,
        description="Name of an accelerator pool that the cluster's administrator has defined in the chart's values; "
        "may be left out where there is only one.",
    )
    count: Annotated[int, Field(ge=0, le=64)] | None = Field(
        None, description="Devices per replica: 1 if left out, none in a CPU pool."
    )
    memory_fraction: Annotated[float, Field(ge=0.01, le=1)] | None = Field(
        None,
        description="Share of each device's memory that the stage may take; stages that share a device share no more "
        "than all of it. Left out, all of it.",
    )
    devices: DeviceNumbers | None = Field(
        None,
        description="Which devices of its pod a colocated stage runs on, counted from 0, so that stages can share "
        "them; left out, count devices of its own.",
    )


class ResourcesSpec(ApiModel):
    """CPU and memory of each replica; devices come from the accelerator."""

    cpu: Quantity | None = Field(None, description='CPUs to reserve, for example 4 or "500m"; use is not capped.')
    memory: Quantity | None = Field(
        None, description="Memory to reserve and the most that may be used, shared memory included, for example 16Gi."
    )


VoiceName = Annotated[str, Field(min_length=1, max_length=128)]


class OutputSpec(ApiModel):
    """What a stage gives the client."""

    modality: Literal["text", "image", "audio", "video"] = Field(description="Kind of media that the client gets.")
    final: bool = Field(True, description="Whether the client's answer ends with this stage's output.")
    voices: Annotated[tuple[VoiceName, ...], Field(max_length=256), ListSet()] = Field(
        (),
        description="Names of the voices that a model with audio output speaks with; requests for others are refused. "
        "Left out, any name reaches the model.",
    )

    @model_serializer(mode="wrap")
    def _without_absent_voices(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As before there were any: an operator that is new must not restart stages that say nothing of them."""
        document: dict[str, Any] = serialize(self)
        if "voices" not in self.model_fields_set:
            document.pop("voices", None)
        return document


class DrainSpec(ApiModel):
    """How a replica leaves."""

    timeout_seconds: Seconds = Field(
        60, description="Longest time that a leaving replica goes on with its running requests."
    )


class ShmSpec(ApiModel):
    """The shared memory (/dev/shm) of each replica."""

    size: Quantity = Field("64Mi", description="Size of /dev/shm; it counts as used memory.")


class StageSpec(ApiModel):
    """A part of the model that runs in processes of its own."""

    name: StageName = Field(description='Short name, unique in the model; "frontend" is taken.')
    ar: ArEngine | None = Field(None, description="Run a model that makes tokens one after another.")
    diffusion: DiffusionEngine | None = Field(
        None, description="Run a part of a diffusion model. One engine block at most; the family's preset may give it."
    )
    generation: GenerationEngine | None = Field(
        None, description="Run a codec, which makes sound of what a model for speech says."
    )
    fake: FakeEngine | None = Field(
        None, description="Run no model at all, for tests; only where the administrator has set allowFakeEngine."
    )
    output: OutputSpec | None = Field(
        None, description="What this stage gives the client; left out if only other stages read its output."
    )
    replicas: Annotated[int, Field(ge=0, le=1000)] = Field(1, description="Number of replicas of the stage.")
    autoscaling: AutoscalingSpec | None = Field(
        None, description="The load says how many replicas there are; in place of replicas. Locally minReplicas run."
    )
    accelerator: AcceleratorSpec = Field(AcceleratorSpec(), description="The devices of each replica.")
    resources: ResourcesSpec = Field(ResourcesSpec(), description="CPU and memory of each replica.")
    sampling: Annotated[dict[str, JsonValue], Field(max_length=32)] = Field(
        {},
        description="Defaults of request parameters, by their name in the request, for example steps or width. "
        "A change restarts nothing.",
    )
    max_in_flight: Annotated[int, Field(ge=1, le=4096)] | None = Field(
        None, description="Most requests that a replica works on at the same time; left out, the engine's own figure."
    )
    max_batch_size: Annotated[int, Field(ge=1, le=1024)] = Field(
        1, description="Most requests that one engine step takes together."
    )
    batch_timeout_seconds: Annotated[float, Field(ge=0, le=60)] = Field(
        0.0, description="How long a step waits for its batch to fill."
    )
    shm: ShmSpec = Field(ShmSpec(), description="The shared memory of each replica.")
    drain: DrainSpec = Field(DrainSpec(), description="How a replica leaves.")
    startup_timeout_seconds: Seconds = Field(
        600, description="Longest time from a replica's start to its first readiness: loading, warm-up and self-test."
    )
    log_level: LogLevel | None = Field(
        None,
        description="From which level on the stage logs; left out, the model's. A change restarts this stage only.",
    )
    profiles: ProfilesSpec | None = Field(
        None, description="Where replicas write profiles; unset, they refuse to record any. In a cluster only."
    )
    admin_port: Annotated[int, Field(ge=1024, le=65535)] | None = Field(
        None,
        description="Port for the control calls over plain HTTP, without authentication, on the pod's own loopback "
        "address: kubectl port-forward reaches it, other pods do not. Unset, there is none. In a cluster only.",
    )
    template: dict[str, JsonValue] = Field(
        {},
        description='A pod template (metadata, spec) that is merged under ours; our container is called "main". '
        "Local mode does not use it.",
    )

    @property
    def engine(self) -> EngineBlock | None:
        """The engine block that is set; None if the family's preset gives it."""
        return self.ar or self.diffusion or self.generation or self.fake

"""What the operator reports under `status`."""

from typing import Annotated, Literal

from pydantic import Field

from omni_contract.api.v1alpha1.base import ApiModel, ListMap, StageName

Count = Annotated[int, Field(ge=0)]
Sentence = Annotated[str, Field(max_length=4096)]


class Condition(ApiModel):
    """One aspect of the model's state."""

    type: Annotated[str, Field(min_length=1, max_length=63)] = Field(
        description="Accepted, ConnectorsReady, StagesReady, FrontendReady, Degraded, ScalingActive, Progressing, "
        "Stalled or Ready."
    )
    status: Literal["True", "False", "Unknown"] = Field(description="Whether the condition holds.")
    reason: Annotated[str, Field(min_length=1, max_length=128)] = Field(
        description="Why, as one word for programs; every one is documented."
    )
    message: Sentence = Field("", description="Why, as a sentence for people.")
    last_transition_time: Annotated[str, Field(json_schema_extra={"format": "date-time"})] = Field(
        description="When the status last changed."
    )
    observed_generation: Count = Field(0, description="The generation of the model that this speaks of.")


class StageStatus(ApiModel):
    """The state of one stage."""

    name: StageName = Field(description="The stage.")
    kind: Annotated[str, Field(max_length=63)] = Field(description="Its engine.")
    revision: Annotated[str, Field(max_length=63)] = Field(
        "", description="Hash of what makes the stage restart when it changes."
    )
    desired: Count = Field(0, description="Replicas that should run.")
    updated: Count = Field(0, description="Replicas that run the current revision.")
    ready: Count = Field(0, description="Replicas that take requests.")
    message: Sentence = Field(
        "", description="What keeps the stage from being ready, in the scheduler's, quota's or kubelet's own words."
    )
    hint: Sentence = Field("", description="What to do about it.")


class OutputStatus(ApiModel):
    """One kind of answer that the model can give."""

    modality: Annotated[str, Field(min_length=1, max_length=63)] = Field(description="text, image, audio or video.")
    servable: bool = Field(description="Whether each stage that it needs has a ready replica, and the frontend too.")
    message: Sentence = Field("", description="What keeps it from being served.")


class Endpoints(ApiModel):
    """Where clients find the model."""

    url: Annotated[str, Field(max_length=512)] | None = Field(
        None, description="Base URL for an OpenAI client inside the cluster."
    )
    node_port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        None, description="Port on every node, if the Service has one."
    )


class OmniModelStatus(ApiModel):
    """The state of the model as the operator last saw it."""

    observed_generation: Count = Field(0, description="The generation of the model that the status speaks of.")
    phase: Annotated[str, Field(max_length=63)] = Field(
        "", description="The state in one word, for people; programs read the conditions."
    )
    conditions: Annotated[tuple[Condition, ...], Field(max_length=32), ListMap(("type",))] = Field(
        (), description="Aspects of the state; each is always present."
    )
    stages: Annotated[tuple[StageStatus, ...], Field(max_length=16), ListMap(("name",))] = Field(
        (), description="The state of each stage."
    )
    outputs: Annotated[tuple[OutputStatus, ...], Field(max_length=16), ListMap(("modality",))] = Field(
        (), description="What can be served now: while stages are away, the answers that do not need them go on."
    )
    stages_ready: Annotated[str, Field(max_length=16)] = Field(
        "", description='Ready stages out of all, for example "2/3".'
    )
    endpoints: Endpoints = Field(Endpoints(), description="Where clients find the model.")
    revision: Annotated[str, Field(max_length=63)] = Field(
        "", description="Name of the stored revision that the children were made from."
    )

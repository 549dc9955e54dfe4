"""An edge: what one stage hands to another, and over which connector."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from omni_contract.api.v1alpha1.base import ApiModel, StageName, TransformName

CONNECTOR = r"^[a-z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"
ConnectorChoice = Annotated[str, StringConstraints(pattern=CONNECTOR, min_length=1, max_length=30)]


class StreamingSpec(ApiModel):
    """How a payload travels while its producer still makes it: frame by frame, in chunks.

    A frame is one item of the producer: a token's hidden states, a frame of codec codes.
    """

    enabled: bool = Field(
        True, description="Whether the edge streams; false switches off what a family's preset has switched on."
    )
    chunk_frames: Annotated[int, Field(ge=1, le=100_000)] = Field(
        1, description="Number of frames that the producer gathers before it sends them."
    )
    initial_chunk_frames: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None,
        description="Number of frames in the first chunk, so that the consumer begins early; as chunkFrames if unset.",
    )
    left_context_frames: Annotated[int, Field(ge=0, le=100_000)] = Field(
        0, description="Number of frames that each chunk repeats of those before it, for consumers that look back."
    )


class EdgeSpec(ApiModel):
    """A hand-over from one stage to another."""

    from_: Annotated[StageName, Field(alias="from", description="The stage that produces the payload.")]
    to: Annotated[StageName, Field(description="The stage that consumes the payload.")]
    connector: ConnectorChoice = Field(
        "auto",
        description="How payloads travel: inside the control message (inline, at most 64 KiB), through shared memory "
        "(shm), from worker to worker (grpc), whichever of these fits stages and payload (auto), or by the name of an "
        "entry of connectors.",
    )
    transform: TransformName | None = Field(
        None, description="Name of the family's function that turns the producer's output into the consumer's input."
    )
    streaming: StreamingSpec | None = Field(
        None,
        description="Send the payload in chunks while it is made, so that the consumer starts before the producer is "
        "done; unset, it is sent whole.",
    )
    retain: Literal["consumed", "terminal"] = Field(
        "consumed", description="When the producer drops a payload: once it is consumed, or when the request is over."
    )

    @property
    def name(self) -> str:
        return f"{self.from_}->{self.to}"

    @property
    def streams(self) -> bool:
        return self.streaming is not None and self.streaming.enabled

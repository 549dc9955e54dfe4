"""An edge: what one stage hands to another, and over which connector."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from omni_contract.api.v1alpha1.base import ApiModel, StageName, TransformName

CONNECTOR = r"^[a-z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"
ConnectorChoice = Annotated[str, StringConstraints(pattern=CONNECTOR, min_length=1, max_length=30)]


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
    retain: Literal["consumed", "terminal"] = Field(
        "consumed", description="When the producer drops a payload: once it is consumed, or when the request is over."
    )

    @property
    def name(self) -> str:
        return f"{self.from_}->{self.to}"

"""The stage table: what the frontend knows of a model, as JSON. Changing it restarts nothing; frontends watch it."""

from typing import Literal, Self

from pydantic import Field, JsonValue

from omni_contract.accelerators import ConfigModel
from omni_contract.api.v1alpha1 import FrontendLimits, OutputSpec


class TableStage(ConfigModel):
    name: str
    engine: Literal["ar", "generation", "diffusion", "fake"]
    output: OutputSpec | None = None
    sampling: dict[str, JsonValue] = Field(default_factory=dict)
    max_in_flight: int
    service: str | None = Field(
        None, description="Headless Service whose EndpointSlices list the replicas; in a cluster."
    )
    addresses: tuple[str, ...] = Field((), description='Replicas, "unix:PATH" or "host:port"; in local mode.')


class TableEdge(ConfigModel):
    source: str
    target: str
    connector: str
    retain: Literal["consumed", "terminal"] = "consumed"
    contract_hash: str


class StageTable(ConfigModel):
    format: Literal[1] = 1
    model: str
    namespace: str
    revision: str
    family: str | None
    served_names: tuple[str, ...]
    stages: tuple[TableStage, ...]
    edges: tuple[TableEdge, ...]
    limits: FrontendLimits
    created: int = Field(description="Unix seconds at which the model was created; /v1/models reports it.")

    @classmethod
    def read(cls, text: str | bytes) -> Self:
        """The table as another version of ours may have written it; raises ValidationError.

        Keys that this version does not know are passed over: a table is often newer than the frontend that reads it. A
        stage file is read strictly, since a worker must not run as if it had done what it was told.
        """
        return cls.model_validate_json(text, extra="ignore")

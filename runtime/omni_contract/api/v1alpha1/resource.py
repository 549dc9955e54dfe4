"""The OmniModel resource as a whole: what a model file holds and what the API server stores."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from omni_contract.api.v1alpha1.base import ApiModel, ModelName
from omni_contract.api.v1alpha1.model import OmniModelSpec


class Metadata(BaseModel):
    """The object's metadata, of which we read a part; the API server defines the rest."""

    model_config = ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel, populate_by_name=True)

    name: ModelName
    namespace: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    uid: str = ""
    generation: int = 0
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    creation_timestamp: str | None = None


class OmniModel(ApiModel):
    """One model to serve."""

    api_version: Literal["serving.omnimodel.dev/v1alpha1"]
    kind: Literal["OmniModel"]
    metadata: Metadata
    spec: OmniModelSpec

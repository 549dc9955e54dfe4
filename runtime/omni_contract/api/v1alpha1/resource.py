"""The OmniModel resource as a whole: what a model file holds and what the API server stores."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from omni_contract.api.v1alpha1.base import ApiModel
from omni_contract.api.v1alpha1.model import OmniModelSpec
from omni_contract.api.v1alpha1.status import OmniModelStatus


class Metadata(BaseModel):
    """The object's metadata, of which we read a part; the API server defines the rest."""

    model_config = ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel, populate_by_name=True)

    name: str
    namespace: str | None = None
    uid: str = ""
    generation: int = 0
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    creation_timestamp: str | None = None


class OmniModel(ApiModel):
    """An omni-modality model, served stage by stage behind one OpenAI-compatible endpoint."""

    api_version: Literal["serving.omnimodel.dev/v1alpha1"]
    kind: Literal["OmniModel"]
    metadata: Metadata
    spec: OmniModelSpec = Field(description="What to serve and how.")
    status: OmniModelStatus = Field(
        OmniModelStatus(), description="The state of the model as the operator last saw it."
    )

"""The OmniModel resource."""

from typing import Annotated, Literal

from pydantic import Field

from omni_contract.api.v1alpha1.base import ApiModel, ServedName
from omni_contract.api.v1alpha1.edge import EdgeSpec
from omni_contract.api.v1alpha1.frontend import FrontendSpec
from omni_contract.api.v1alpha1.stage import StageSpec


class ModelSource(ApiModel):
    source: Annotated[str, Field(min_length=1, max_length=512)]
    revision: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    served_names: Annotated[tuple[ServedName, ...], Field(max_length=16)] = ()
    load_format: Literal["auto", "dummy"] = "auto"
    trust_remote_code: bool = False


class OmniModelSpec(ApiModel):
    model: ModelSource
    family: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    stages: Annotated[tuple[StageSpec, ...], Field(max_length=16)] = ()
    edges: Annotated[tuple[EdgeSpec, ...], Field(max_length=64)] = ()
    frontend: FrontendSpec = FrontendSpec()
    suspend: bool = False

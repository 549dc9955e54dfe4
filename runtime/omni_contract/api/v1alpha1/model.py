"""What the user writes under `spec`."""

from typing import Annotated, Literal

from pydantic import Field

from omni_contract.api.v1alpha1.base import ApiModel, ListMap, ListSet, ServedName
from omni_contract.api.v1alpha1.connector import ConnectorSpec
from omni_contract.api.v1alpha1.edge import EdgeSpec
from omni_contract.api.v1alpha1.frontend import FrontendSpec
from omni_contract.api.v1alpha1.monitoring import MonitoringSpec
from omni_contract.api.v1alpha1.network import NetworkSpec
from omni_contract.api.v1alpha1.placement import PlacementSpec
from omni_contract.api.v1alpha1.stage import StageSpec


class ModelSource(ApiModel):
    """The checkpoint."""

    source: Annotated[str, Field(min_length=1, max_length=512)] = Field(
        description="Where the checkpoint is: pvc://CLAIM/PATH, a folder in a PersistentVolumeClaim of this namespace."
    )
    revision: Annotated[str, Field(min_length=1, max_length=128)] | None = Field(
        None, description="Commit of a hub model; for the sources of a later release."
    )
    served_names: Annotated[tuple[ServedName, ...], Field(max_length=16), ListSet()] = Field(
        (), description="Names under which clients ask for the model; left out, the resource's own name."
    )
    load_format: Literal["auto", "dummy"] = Field(
        "auto", description="Whether weights are read (auto) or only their shapes, with random values (dummy)."
    )
    trust_remote_code: bool = Field(
        False, description="Whether code from the checkpoint may run; no family of this release needs it."
    )


class OmniModelSpec(ApiModel):
    """The model to serve: its checkpoint, its stages and what flows between them, its endpoint."""

    model: ModelSource = Field(description="The checkpoint.")
    family: Annotated[str, Field(min_length=1, max_length=63)] | None = Field(
        None,
        description="Name of a preset that gives stages, edges, sampling defaults and endpoints. Stages and edges "
        "below lie over it, field by field; if one of the stages has a name that the preset does not know, the stages "
        "and edges below replace it. Without a family, stages and edges must be complete.",
    )
    stages: Annotated[tuple[StageSpec, ...], Field(max_length=16), ListMap(("name",))] = Field(
        (), description="The parts of the model, each in processes of its own, on its own accelerator."
    )
    edges: Annotated[tuple[EdgeSpec, ...], Field(max_length=64), ListMap(("from", "to"))] = Field(
        (), description="What flows between stages. Together they form a graph without circles."
    )
    connectors: Annotated[tuple[ConnectorSpec, ...], Field(max_length=16), ListMap(("name",))] = Field(
        (), description="Connectors with settings, which edges choose by name."
    )
    placement: PlacementSpec = Field(PlacementSpec(), description="Where stages run in relation to each other.")
    frontend: FrontendSpec = Field(FrontendSpec(), description="The model's OpenAI-compatible endpoint.")
    network: NetworkSpec = Field(NetworkSpec(), description="How the parts of the model reach each other.")
    monitoring: MonitoringSpec = Field(MonitoringSpec(), description="What the model's processes tell of what they do.")
    suspend: bool = Field(
        False, description="Run no stage for now: all objects stay, and the frontend answers 503 and says why."
    )

"""An edge: what one stage hands to another, and over which connector."""

from typing import Literal

from omni_contract.api.v1alpha1.base import ApiModel, StageName, TransformName


class EdgeSpec(ApiModel):
    from_: StageName
    to: StageName
    connector: Literal["auto", "inline", "grpc"] = "auto"
    transform: TransformName | None = None
    retain: Literal["consumed", "terminal"] = "consumed"

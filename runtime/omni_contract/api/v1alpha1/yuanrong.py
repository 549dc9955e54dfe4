"""Settings of the connector over openYuanrong's data system."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from omni_contract.api.v1alpha1.base import ApiModel
from omni_contract.api.v1alpha1.mooncake import HostName


class YuanrongConnector(ApiModel):
    """openYuanrong's data system: payloads lie in the memory of its worker on each node."""

    kind: ClassVar[Literal["yuanrong"]] = "yuanrong"

    host: HostName = Field("127.0.0.1", description="Host of the data system's worker; it must be on the same node.")
    port: Annotated[int, Field(ge=1, le=65_535)] = Field(31_501, description="Port of that worker.")
    get_timeout_seconds: Annotated[float, Field(ge=0, le=600)] = Field(
        1.0, description="How long a payload may take to appear on the consumer's node."
    )
    checksum: bool = Field(False, description="Whether the consumer checks that payloads are undamaged.")

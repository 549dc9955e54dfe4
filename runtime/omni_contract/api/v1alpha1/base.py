"""Building blocks of the resource's schema: the base model and bounded, described scalar types.

Every string and list is bounded so that the cost of the CEL rules is, too.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel


class ApiModel(BaseModel):
    """Base of everything in an OmniModel: camelCase in YAML, unknown keys refused, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


StageName = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", min_length=1, max_length=15)]
ModelName = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", min_length=1, max_length=30)]
PoolName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", min_length=1, max_length=63)]
ServedName = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\s]+$")]
TransformName = Annotated[
    str, StringConstraints(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-._a-z0-9]*[a-z0-9])?$")
]
Quantity = Annotated[
    str, StringConstraints(min_length=1, max_length=20, pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$")
]
Seconds = Annotated[int, Field(ge=1, le=86_400)]

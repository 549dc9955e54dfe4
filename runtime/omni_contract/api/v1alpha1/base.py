"""Building blocks of the resource's schema: the base model and bounded scalar and list types.

Every string and list is bounded so that the cost of the CEL rules is, too.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

DNS_LABEL = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
QUANTITY = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$"


class ApiModel(BaseModel):
    """Base of everything in an OmniModel: camelCase in YAML, unknown keys refused, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


@dataclass(frozen=True)
class ListMap:
    """Annotation of a list whose items are told apart by `keys`: a map for the API server, no twins for us."""

    keys: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._refuse_twins, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema) | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(self.keys)}

    def _refuse_twins(self, items: Sequence[BaseModel]) -> Sequence[BaseModel]:
        dumps = [item.model_dump(by_alias=True) for item in items]
        counts = Counter(tuple(dump[key] for key in self.keys) for dump in dumps)
        _refuse(" -> ".join(map(str, values)) for values, count in counts.items() if count > 1)
        return items


@dataclass(frozen=True)
class ListSet:
    """Annotation of a list of scalars that holds nothing twice."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._refuse_twins, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema) | {"x-kubernetes-list-type": "set"}

    def _refuse_twins(self, items: Sequence[Any]) -> Sequence[Any]:
        _refuse(str(value) for value, count in Counter(items).items() if count > 1)
        return items


def _refuse(twins: Any) -> None:
    if names := ", ".join(f'"{twin}"' for twin in twins):
        raise PydanticCustomError("duplicate", "{twins} stands here more than once; keep one", {"twins": names})


def _number_as_text(value: Any) -> Any:
    """`cpu: 2` means the same as `cpu: "2"`, as everywhere in Kubernetes."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


StageName = Annotated[str, StringConstraints(pattern=DNS_LABEL, min_length=1, max_length=15)]
PoolName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", min_length=1, max_length=63)]
SecretName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$", min_length=1, max_length=253)
]
ServedName = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\s]+$")]
TransformName = Annotated[
    str, StringConstraints(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-._a-z0-9]*[a-z0-9])?$")
]
Quantity = Annotated[
    str,
    StringConstraints(min_length=1, max_length=20, pattern=QUANTITY),
    BeforeValidator(_number_as_text),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY,
            "maxLength": 20,
            "minimum": 0,
            "x-kubernetes-int-or-string": True,
        }
    ),
]
Seconds = Annotated[int, Field(ge=1, le=86_400)]

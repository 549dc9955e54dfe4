"""From the pydantic models to a structural OpenAPI schema, as the API server wants it in a CRD."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from omni_contract.api.rules import Rule
from omni_contract.api.v1alpha1.base import ApiModel

Schema: TypeAlias = dict[str, Any]

DROPPED = frozenset({"title", "default", "additionalProperties", "anyOf", "$ref", "$defs", "const"})
FREE: Schema = {"x-kubernetes-preserve-unknown-fields": True}
DEFAULT = "Default: "
"""Begins the clause that tells a default which the API server does not write."""
UNWRITTEN_DEFAULTS = frozenset({"stages", "edges", "status"})
"""Fields below which the API server writes no defaults: the family's preset or the operator may give the value."""


def structural(model: type[ApiModel]) -> Schema:
    """The schema of a model: references resolved, null dropped (a field is there or not), defaults written."""
    document = model.model_json_schema(by_alias=True)
    return _Translation(document.get("$defs", {})).of(document, writes_defaults=True)


def with_rules(schema: Schema, rules: Sequence[Rule]) -> Schema:
    """The schema with each rule at its place."""
    for rule in rules:
        _at(schema, rule.at).setdefault("x-kubernetes-validations", []).append(rule.validation())
    return schema


def _at(schema: Schema, path: Sequence[str]) -> Schema:
    for step in path:
        schema = schema["items"] if step == "[]" else schema["properties"][step]
    return schema


class _Translation:
    """One pass over a JSON schema as pydantic writes it."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def of(self, source: Schema, writes_defaults: bool) -> Schema:
        source = self._resolved(source)
        target = {key: value for key, value in source.items() if key not in DROPPED}
        if source.get("x-kubernetes-int-or-string"):
            return target | {"anyOf": source["anyOf"]}
        if "properties" in source:
            self._object(source, target, writes_defaults)
        elif source.get("type") == "object":
            self._map(source, target)
        elif source.get("type") == "array":
            target["items"] = self.of(source["items"], writes_defaults)
        return target

    def _object(self, source: Schema, target: Schema, writes_defaults: bool) -> None:
        target["properties"] = {}
        for name, field in source["properties"].items():
            inner = self.of(field, writes_defaults and name not in UNWRITTEN_DEFAULTS)
            self._default(field, inner, writes_defaults)
            target["properties"][name] = inner

    def _map(self, source: Schema, target: Schema) -> None:
        values = self._resolved(source.get("additionalProperties", {}))
        if "maxProperties" in source or values.get("type"):
            target["additionalProperties"] = self.of(values, writes_defaults=False) if values.get("type") else FREE
        else:
            target |= FREE

    def _default(self, field: Schema, target: Schema, writes_defaults: bool) -> None:
        default = field.get("default")
        if default is None:
            return
        if writes_defaults:
            target["default"] = _without_none(default)
        elif default and not isinstance(default, dict):
            target["description"] = f"{target['description']} {DEFAULT}{text_of(default)}."

    def _resolved(self, source: Schema) -> Schema:
        """The schema without `$ref` and without `| null`; what stands beside them, such as a description, wins."""
        beside = {key: value for key, value in source.items() if key not in {"$ref", "anyOf"}}
        if "$ref" in source:
            return self._resolved(self._definitions[source["$ref"].rpartition("/")[2]]) | beside
        if "anyOf" in source and not source.get("x-kubernetes-int-or-string"):
            (choice,) = [choice for choice in source["anyOf"] if choice.get("type") != "null"]
            return self._resolved(choice) | beside
        return source


def text_of(default: object) -> str:
    if isinstance(default, list):
        return ", ".join(map(str, default))
    return str(default).lower() if isinstance(default, bool) else str(default)


def _without_none(value: Any) -> Any:
    """The server checks a default as it stands, before it fills in the defaults within: it must be complete."""
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return value

"""What the API server and `kubectl explain` need of the generated schema, without a server."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from omni_contract.api.crd import crd, schema
from omni_contract.api.generate import CHART_FILE, CRD_FILE
from omni_contract.api.rules import RULES

SPEC = schema()["properties"]["spec"]


def _fields(node: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, field in node.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from _fields(field, f"{path}.{name}")
    if isinstance(node.get("items"), dict):
        yield f"{path}[]", node["items"]
        yield from _fields(node["items"], f"{path}[]")


FIELDS = dict(_fields(schema(), ""))


def test_every_field_says_in_a_sentence_what_it_means() -> None:
    own = {path: field for path, field in FIELDS.items() if not path.endswith("[]") and path.count(".") > 1}
    own = {path: field for path, field in own.items() if not path.startswith(".metadata")}

    silent = [path for path, field in own.items() if not field.get("description", "").endswith(".")]

    assert silent == []


def test_every_text_and_list_is_bounded() -> None:
    def is_bounded(field: dict[str, Any]) -> bool:
        bound = {"string": "maxLength", "array": "maxItems"}.get(field.get("type", ""))
        return bound is None or bound in field or "enum" in field or "format" in field

    unbounded = [
        path for path, field in FIELDS.items() if path.startswith((".spec", ".status")) and not is_bounded(field)
    ]

    assert unbounded == []


def test_every_number_that_a_user_writes_has_limits() -> None:
    open_ended = [
        path
        for path, field in FIELDS.items()
        if path.startswith(".spec")
        and field.get("type") in {"integer", "number"}
        and not {"minimum", "maximum"} <= set(field)
    ]

    assert open_ended == []


def test_only_the_users_own_maps_take_unknown_keys() -> None:
    free = [path for path, field in FIELDS.items() if "x-kubernetes-preserve-unknown-fields" in json.dumps(field)]

    assert [path for path in free if not any(other != path and other.startswith(path) for other in free)] == [
        ".spec.stages[].ar.extraArgs",
        ".spec.stages[].sampling",
        ".spec.stages[].template",
    ]


def test_lists_of_objects_are_maps_by_their_names() -> None:
    keys = {
        path: field["x-kubernetes-list-map-keys"]
        for path, field in FIELDS.items()
        if field.get("x-kubernetes-list-type") == "map"
    }

    assert keys == {
        ".spec.stages": ["name"],
        ".spec.edges": ["from", "to"],
        ".spec.connectors": ["name"],
        ".spec.network.tls.stages": ["name"],
        ".spec.stages[].ar.loras": ["name"],
        ".spec.stages[].autoscaling.podMetrics": ["name"],
        ".spec.frontend.autoscaling.podMetrics": ["name"],
        ".status.conditions": ["type"],
        ".status.outputs": ["modality"],
        ".status.stages": ["name"],
    }


def test_no_default_is_written_where_a_preset_may_give_the_value() -> None:
    written = [path for path, field in FIELDS.items() if "default" in field]

    assert not [path for path in written if path.startswith((".spec.stages[]", ".spec.edges[]", ".status"))]
    assert ".spec.frontend.limits.queueTimeoutSeconds" in written


def test_an_unwritten_default_is_told_in_the_description() -> None:
    assert FIELDS[".spec.stages[].replicas"]["description"] == "Number of replicas of the stage. Default: 1."


def test_the_schema_has_no_leftovers_of_json_schema() -> None:
    text = json.dumps(schema())

    assert not [
        word for word in ("$ref", "$defs", '"null"', '"title":', '"additionalProperties": false') if word in text
    ]


def test_the_crd_carries_every_rule_with_a_message() -> None:
    def validations(node: Any) -> Iterator[dict[str, str]]:
        if isinstance(node, dict):
            yield from node.get("x-kubernetes-validations", [])
            for value in node.values():
                yield from validations(value)

    found = list(validations(schema()))

    assert len(found) == len(RULES) >= 10
    assert all(("message" in rule) != ("messageExpression" in rule) for rule in found)


@pytest.mark.case("operator:I01")
def test_the_crd_is_far_smaller_than_what_kubectl_apply_can_annotate() -> None:
    assert len(json.dumps(crd())) < 200 * 1024


def test_the_files_hold_the_same_crd_as_the_models(request: pytest.FixtureRequest) -> None:
    for name in (CRD_FILE, CHART_FILE):
        assert yaml.safe_load((request.config.rootpath / name).read_text()) == crd()

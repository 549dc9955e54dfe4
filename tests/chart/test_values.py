"""The chart's values: what the schema refuses, and that it says the same as the code that reads them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from images.recipes import RECIPES
from omni_contract.accelerators import ConfigModel, Pool, VendorProfile
from tests.support.helm import CHART

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())


def objects(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        if "properties" in schema and isinstance(schema.get("type"), str):
            yield place, schema
        for key, value in schema.items():
            yield from objects(value, f"{place}/{key}")


def test_every_object_of_the_schema_refuses_unknown_keys() -> None:
    lax = [place for place, schema in objects(SCHEMA) if schema.get("additionalProperties") is not False]

    assert lax == []


@pytest.mark.parametrize(("name", "model"), [("profile", VendorProfile), ("pool", Pool)])
def test_schema_knows_exactly_the_fields_that_the_operator_reads(name: str, model: type[ConfigModel]) -> None:
    aliases = {field.alias for field in model.model_fields.values()}

    assert set(SCHEMA["$defs"][name]["properties"]) == aliases


def test_every_default_has_a_place_in_the_schema_and_the_other_way_round() -> None:
    assert set(VALUES) | {"global"} == set(SCHEMA["properties"])


def test_images_of_the_values_are_the_ones_that_the_tool_builds() -> None:
    images = VALUES["images"]
    named = [images["operator"], images["frontend"], *filter(None, images["runtime"].values())]

    assert sorted(named) == sorted(f"omni-operator/{name}" for name in RECIPES)


def test_every_block_of_the_values_is_explained() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    blocks = [number for number, line in enumerate(lines) if line and line[0].isalpha()]

    unexplained = [lines[number] for number in blocks if not lines[number - 1].startswith("#")]

    assert unexplained == []

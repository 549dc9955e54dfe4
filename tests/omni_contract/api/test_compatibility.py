"""Objects stored in clusters outlive the release that wrote them: fields are added, never renamed or removed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omni_contract.api.crd import crd, schema

FIELDS = Path(__file__).parent / "golden" / "fields.txt"
"""One field a line with its type. Add the lines of new fields; a line that goes away breaks stored objects."""


def _fields(node: dict[str, Any], path: str) -> Iterator[str]:
    for name, field in node.get("properties", {}).items():
        kind = field.get("type") or "quantity"
        yield f"{path}{name} {kind}"
        yield from _fields(field.get("items", field), f"{path}{name}{'[]' if kind == 'array' else ''}.")


@pytest.mark.case("operator:I13")
def test_no_field_goes_away_or_changes_its_type() -> None:
    now = sorted(line for part in ("spec", "status") for line in _fields(schema()["properties"][part], f"{part}."))

    assert now == FIELDS.read_text().splitlines()


@pytest.mark.case("operator:I05")
def test_one_version_is_served_and_stored_so_that_nothing_needs_conversion() -> None:
    versions = crd()["spec"]["versions"]

    assert [(version["name"], version["served"], version["storage"]) for version in versions] == [
        ("v1alpha1", True, True)
    ]
    assert "conversion" not in crd()["spec"]

"""docs/features.md from docs/features.yaml: `python -m tests.layout.features` writes it."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.layout.source import CHECKOUT

DATA = CHECKOUT / "docs" / "features.yaml"
PAGE = CHECKOUT / "docs" / "features.md"
STATES = {"here": "works here", "gpu": "needs accelerators", "later": "later"}
HEAD = """# Features

*Works here* is proven by the test named, on a machine without accelerators; *needs accelerators* is written but shown
only there; *later* is designed for and not written. Made from `features.yaml` by `python -m tests.layout.features`.
"""


@dataclass(frozen=True)
class Feature:
    area: str
    name: str
    state: str
    proof: str = ""


def read_features(path: Path = DATA) -> list[Feature]:
    return [Feature(area["area"], **row) for area in yaml.safe_load(path.read_text()) for row in area["features"]]


def page(features: list[Feature]) -> str:
    return HEAD + "\n".join(
        line for area in dict.fromkeys(one.area for one in features) for line in _area(area, features)
    )


def _area(area: str, features: list[Feature]) -> Iterator[str]:
    yield from ("", f"## {area}", "", "| Feature | State | Shown by |", "| --- | --- | --- |")
    for one in features:
        if one.area == area:
            yield f"| {one.name} | {STATES[one.state]} | {_proof(one)} |"
    yield ""


def _proof(feature: Feature) -> str:
    if not feature.proof:
        return ""
    file, _, test = feature.proof.partition("::")
    return f"[{test.removeprefix('test_').replace('_', ' ')}](../{file})"


def main() -> int:
    PAGE.write_text(page(read_features()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

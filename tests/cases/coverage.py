"""docs/coverage.yaml: for each row of the source inventories one of test, refused, later."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import yaml

COVERAGE = Path(__file__).parents[2] / "docs" / "coverage.yaml"
Answer: TypeAlias = Literal["test", "refused", "later"]
ANSWERS: tuple[Answer, ...] = ("test", "refused", "later")


@dataclass(frozen=True)
class Row:
    """`text` is the reason or what is waited for; `tests` are pytest ids without parameters."""

    answer: Answer
    tests: tuple[str, ...] = ()
    text: str = ""


class CoverageError(ValueError):
    """A row is not in the form that the head of docs/coverage.yaml describes."""


def read_coverage(path: Path = COVERAGE) -> dict[str, Row]:
    return {row_id: parse_row(row_id, value) for row_id, value in yaml.safe_load(path.read_text()).items()}


def parse_row(row_id: str, value: object) -> Row:
    match value:
        case {"test": [*tests], **rest} if not rest and tests and all(isinstance(one, str) for one in tests):
            return Row("test", tests=tuple(tests))
        case {"refused": str(reason), **rest} if not rest and reason:
            return Row("refused", text=reason)
        case {"later": str(awaited), **rest} if not rest and awaited:
            return Row("later", text=awaited)
    raise CoverageError(f"{row_id}: write one of {{test: [IDS]}}, {{refused: REASON}}, {{later: WHAT IT WAITS FOR}}")


def wrong_ids(rows: Mapping[str, Row], known: tuple[str, ...]) -> Iterator[str]:
    yield from (f"{row_id} is not in docs/coverage.yaml" for row_id in known if row_id not in rows)
    yield from (f"{row_id} is no row of an inventory" for row_id in rows if row_id not in set(known))


def wrong_tests(rows: Mapping[str, Row], runnable: frozenset[str], skipped: frozenset[str]) -> Iterator[str]:
    for row_id, row in rows.items():
        for test in row.tests:
            if test in skipped:
                yield f"{row_id}: {test} is skipped"
            elif test not in runnable:
                yield f"{row_id}: {test} does not exist"

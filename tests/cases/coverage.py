"""docs/coverage.yaml: for each row of the source inventories one of test, refused, later. docs/cases.yaml: the same for
reported faults, of which a test itself says that it covers them; so here are only those without one."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import yaml

DOCS = Path(__file__).parents[2] / "docs"
COVERAGE = DOCS / "coverage.yaml"
CASES = DOCS / "cases.yaml"
Answer: TypeAlias = Literal["test", "refused", "later"]
ANSWERS: tuple[Answer, ...] = ("test", "refused", "later")


@dataclass(frozen=True)
class Row:
    """`text` is the reason or what is waited for; `tests` are pytest ids without parameters."""

    answer: Answer
    tests: tuple[str, ...] = ()
    text: str = ""


class CoverageError(ValueError):
    """A row is not in the form that the head of its file describes."""


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


def wrong_reasons(reasons: Mapping[str, Row], known: tuple[str, ...], covered: Collection[str]) -> Iterator[str]:
    """Of docs/cases.yaml: each known case has a test or a reason, never both."""
    for case, row in reasons.items():
        if case not in known:
            yield f"{case} is no reported fault"
        elif case in covered:
            yield f"{case} has a test, so docs/cases.yaml need not say why it has none"
        elif row.answer == "test":
            yield f"{case}: mark the test itself with it"

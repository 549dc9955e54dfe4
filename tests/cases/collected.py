"""What pytest would run, read by collecting: ids, levels, case marks and static skips. Nothing is executed."""

import io
from collections import defaultdict
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field

import pytest

LEVELS = ("unit", "schedules", "models", "api", "connectors", "local", "chaos", "control", "cluster", "gpu")


@dataclass
class Collected:
    runnable: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    levels_by_case: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            self.add(item)

    def add(self, item: pytest.Item) -> None:
        name = item.nodeid.partition("[")[0]
        if is_skipped(item):
            self.skipped.add(name)
            return
        self.runnable.add(name)
        for mark in item.iter_markers("case"):
            for case in mark.args:
                self.levels_by_case[case].add(level_of(item))


def is_skipped(item: pytest.Item) -> bool:
    """By a mark; a test that calls pytest.skip is seen only when it runs, and then `make test` shows it."""
    conditions = [mark.args[:1] for mark in item.iter_markers("skipif")]
    return item.get_closest_marker("skip") is not None or any(condition == (True,) for condition in conditions)


def level_of(item: pytest.Item) -> str:
    return next((level for level in LEVELS if item.get_closest_marker(level)), "unit")


def collect(arguments: tuple[str, ...] = ("tests",)) -> Collected:
    collected, output = Collected(), io.StringIO()
    with redirect_stdout(output):
        code = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *arguments], plugins=[collected])
    if code != pytest.ExitCode.OK:
        raise RuntimeError(f"the tests cannot be collected:\n{output.getvalue()}")
    return collected


def covered(levels_by_case: Mapping[str, set[str]], case: str) -> str:
    """The levels whose tests carry the case's id, for a table."""
    return " ".join(level for level in LEVELS if level in levels_by_case.get(case, set()))

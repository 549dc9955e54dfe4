"""The runner of the levels reads pytest's words rightly: a green line must be earned."""

from graphlib import TopologicalSorter
from itertools import pairwise

import pytest

from tests.levels import MARKED, NEEDS, PARTS, STEPS, Level, Outcome, failed_tests, known_levels, outcome, run_levels

TESTS = Level("unit", ("pytest",))
CHECK = Level("check", ("make",), counts_tests=False)


@pytest.mark.parametrize(
    ("level", "code", "text", "is_green"),
    [
        (TESTS, 0, "3 passed, 1 skipped in 0.1s", True),
        (TESTS, 1, "1 failed, 2 passed in 0.1s", False),
        (TESTS, 1, "2 passed, 1 error in 0.1s", False),
        (TESTS, 0, "4 deselected in 0.1s", False),
        (TESTS, 137, "..", False),
        (CHECK, 0, "all is well", True),
        (CHECK, 2, "make: *** [lint] Error 1", False),
    ],
)
def test_a_level_is_green_only_if_its_command_succeeded_and_tests_passed(
    level: Level, code: int, text: str, is_green: bool
) -> None:
    assert outcome(level, code, 1.0, text).is_green is is_green


def test_the_counts_are_those_of_the_closing_line() -> None:
    result = outcome(TESTS, 1, 1.0, "1 passed in 0.5s\nFAILED a\n2 failed, 7 passed, 3 skipped, 1 error in 4.5s\n")
    assert (result.passed, result.failed, result.skipped) == (7, 3, 3)


def test_failed_tests_are_named() -> None:
    text = "FAILED tests/a.py::test_x - boom\nERROR tests/b.py::test_y\nok"
    assert failed_tests(text) == ("tests/a.py::test_x", "tests/b.py::test_y")


def test_what_a_level_needs_has_ended_before_it_begins() -> None:
    said: list[str] = []

    def run(level: Level) -> Outcome:
        said.extend((f"{level.name} begins", f"{level.name} ends"))
        return outcome(level, 0, 1.0, "1 passed in 0.1s")

    levels = known_levels()
    assert {result.level for result in run_levels(levels, run)} == set(levels)
    for name, needed in {**NEEDS, "cluster": "cluster-up", "unit": "check", "models": "unit-runtime"}.items():
        assert said.index(f"{needed} ends") < said.index(f"{name} begins")


def test_a_level_alone_waits_for_nothing() -> None:
    (alone,) = run_levels({"control"}, lambda level: outcome(level, 0, 1.0, "1 passed in 0.1s"))
    assert alone.level == "control"


def test_no_lanes_wait_for_each_other() -> None:
    before: dict[str, set[str]] = {name: {needed} for name, needed in NEEDS.items()}
    for first, second in (pair for step in STEPS for lane in step for pair in pairwise(lane)):
        before.setdefault(second, set()).add(first)
    assert set(TopologicalSorter(before).static_order()) <= set(known_levels())


def test_every_marker_is_a_level_that_runs_once() -> None:
    names = [name for step in STEPS for lane in step for name in lane]
    parts = {part for of_level in PARTS.values() for part in of_level}
    assert sorted(names) == sorted({*MARKED, *parts, "check", "programs", "node-image"})

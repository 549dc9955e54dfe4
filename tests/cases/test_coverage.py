import pytest

from tests.cases.coverage import (
    CASES,
    CoverageError,
    Row,
    parse_row,
    read_coverage,
    wrong_ids,
    wrong_reasons,
    wrong_tests,
)
from tests.cases.ids import known_case_ids, known_row_ids

TEST = "tests/a/test_b.py::test_c"


def test_every_row_of_the_inventories_has_an_answer() -> None:
    assert list(wrong_ids(read_coverage(), known_row_ids())) == []


def test_the_frozen_ids_are_complete_and_unique() -> None:
    assert len(known_row_ids()) == len(set(known_row_ids())) == 198 + 212 + 160 + 21
    assert len(known_case_ids()) == len(set(known_case_ids())) == 298


@pytest.mark.parametrize(
    ("value", "row"),
    [
        ({"test": [TEST]}, Row("test", tests=(TEST,))),
        ({"refused": "why"}, Row("refused", text="why")),
        ({"later": "the talker"}, Row("later", text="the talker")),
    ],
)
def test_a_row_is_one_of_three_answers(value: dict[str, object], row: Row) -> None:
    assert parse_row("A1", value) == row


@pytest.mark.parametrize(
    "value", [{}, {"test": []}, {"test": TEST}, {"later": ""}, {"refused": "a", "later": "b"}, "later", {"done": "x"}]
)
def test_any_other_form_is_refused_by_the_rows_id(value: object) -> None:
    with pytest.raises(CoverageError, match="A1: write one of"):
        parse_row("A1", value)


def test_a_missing_and_an_unknown_row_are_both_wrong() -> None:
    assert list(wrong_ids({"A2": Row("later", text="x")}, ("A1",))) == [
        "A1 is not in docs/coverage.yaml",
        "A2 is no row of an inventory",
    ]


def test_a_named_test_must_exist_and_run() -> None:
    rows = {"A1": Row("test", tests=(TEST,))}
    assert list(wrong_tests(rows, frozenset({TEST}), frozenset())) == []
    assert list(wrong_tests(rows, frozenset(), frozenset())) == [f"A1: {TEST} does not exist"]
    assert list(wrong_tests(rows, frozenset(), frozenset({TEST}))) == [f"A1: {TEST} is skipped"]


def test_only_reported_faults_have_a_reason_to_have_no_test() -> None:
    assert list(wrong_reasons(read_coverage(CASES), known_case_ids(), ())) == []


def test_a_case_has_a_test_or_a_reason_and_not_both() -> None:
    reason, known = Row("refused", text="x"), ("runtime:L1", "runtime:L2")
    assert list(wrong_reasons({"runtime:L1": reason}, known, ())) == []
    assert list(wrong_reasons({"runtime:Z1": reason}, known, ())) == ["runtime:Z1 is no reported fault"]
    assert list(wrong_reasons({"runtime:L2": Row("test", tests=(TEST,))}, known, ())) == [
        "runtime:L2: mark the test itself with it"
    ]
    [problem] = wrong_reasons({"runtime:L1": reason}, known, {"runtime:L1": {"unit"}})
    assert problem.startswith("runtime:L1 has a test")

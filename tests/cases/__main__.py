"""`make cases`: prints what is covered, and fails on an id that is missing or names a test that would not run."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping

from tests.cases.collected import LEVELS, Collected, collect
from tests.cases.coverage import ANSWERS, CASES, Row, read_coverage, wrong_ids, wrong_reasons, wrong_tests
from tests.cases.ids import known_case_ids, known_row_ids

INVENTORIES = {"A1-A198": "A", "B1-B212": "B", "R001-R160": "R", "AC-01-AC-21": "AC-"}
PAGES = ("operator", "runtime")
CASE_ANSWERS = ("covered", "refused", "later", "open")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make cases", description=__doc__)
    parser.add_argument(
        "--list", action="store_true", help="name what waits, and each case with neither a test nor a reason"
    )
    options = parser.parse_args()
    rows, reasons, collected = read_coverage(), read_coverage(CASES), collect()
    print_table("rows of the inventories", ANSWERS, row_counts(rows))
    print_table("reported faults", (*CASE_ANSWERS, *LEVELS), case_counts(collected, reasons))
    if options.list:
        print_open(rows, reasons, collected)
    problems = [
        *wrong_ids(rows, known_row_ids()),
        *wrong_tests(rows, frozenset(collected.runnable), frozenset(collected.skipped)),
        *wrong_reasons(reasons, known_case_ids(), collected.levels_by_case),
    ]
    print(*(f"wrong: {problem}" for problem in problems), sep="\n")
    return int(bool(problems))


def row_counts(rows: Mapping[str, Row]) -> dict[str, Counter[str]]:
    return {
        title: Counter(row.answer for row_id, row in rows.items() if inventory_of(row_id) == prefix)
        for title, prefix in INVENTORIES.items()
    }


def inventory_of(row_id: str) -> str:
    return row_id.rstrip("0123456789")


def case_counts(collected: Collected, reasons: Mapping[str, Row]) -> dict[str, Counter[str]]:
    return {page: _count_page(page, collected, reasons) for page in PAGES}


def _count_page(page: str, collected: Collected, reasons: Mapping[str, Row]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for case in known_case_ids():
        if case.startswith(f"{page}:"):
            counts.update(collected.levels_by_case.get(case, ()))
            counts[answer_of(case, collected, reasons)] += 1
    return counts


def answer_of(case: str, collected: Collected, reasons: Mapping[str, Row]) -> str:
    """One of CASE_ANSWERS."""
    if collected.levels_by_case.get(case):
        return "covered"
    return reasons[case].answer if case in reasons else "open"


def print_table(title: str, columns: Iterable[str], counts: Mapping[str, Counter[str]]) -> None:
    columns = tuple(columns)
    print(f"{title:24}" + "".join(f"{column:>11}" for column in columns))
    for name, row in counts.items():
        print(f"  {name:22}" + "".join(f"{row[column]:>11}" for column in columns))
    total = sum(counts.values(), Counter())
    print(f"  {'all':22}" + "".join(f"{total[column]:>11}" for column in columns) + "\n")


def print_open(rows: Mapping[str, Row], reasons: Mapping[str, Row], collected: Collected) -> None:
    waiting = {**rows, **reasons}.items()
    print(*(f"{name}: {row.text}" for name, row in waiting if row.answer == "later"), sep="\n")
    print("open:", *(case for case in known_case_ids() if answer_of(case, collected, reasons) == "open"))


if __name__ == "__main__":
    sys.exit(main())

"""`make cases`: prints what is covered, and fails on an id that is missing or names a test that would not run."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping

from tests.cases.collected import LEVELS, Collected, collect
from tests.cases.coverage import ANSWERS, Row, read_coverage, wrong_ids, wrong_tests
from tests.cases.ids import known_case_ids, known_row_ids

INVENTORIES = {"A1-A198": "A", "B1-B212": "B", "R001-R160": "R", "AC-01-AC-21": "AC-"}
PAGES = ("operator", "runtime")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make cases", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name each row that waits and each case without a test")
    options = parser.parse_args()
    rows, collected = read_coverage(), collect()
    print_table("rows of the inventories", ANSWERS, row_counts(rows))
    print_table("reported faults", ("covered", "open", *LEVELS), case_counts(collected))
    if options.list:
        print_open(rows, collected)
    problems = [
        *wrong_ids(rows, known_row_ids()),
        *wrong_tests(rows, frozenset(collected.runnable), frozenset(collected.skipped)),
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


def case_counts(collected: Collected) -> dict[str, Counter[str]]:
    return {page: _count_page(page, collected) for page in PAGES}


def _count_page(page: str, collected: Collected) -> Counter[str]:
    counts: Counter[str] = Counter()
    for case in known_case_ids():
        if not case.startswith(f"{page}:"):
            continue
        levels = collected.levels_by_case.get(case, set())
        counts.update(levels, **{"covered" if levels else "open": 1})
    return counts


def print_table(title: str, columns: Iterable[str], counts: Mapping[str, Counter[str]]) -> None:
    columns = tuple(columns)
    print(f"{title:24}" + "".join(f"{column:>11}" for column in columns))
    for name, row in counts.items():
        print(f"  {name:22}" + "".join(f"{row[column]:>11}" for column in columns))
    total = sum(counts.values(), Counter())
    print(f"  {'all':22}" + "".join(f"{total[column]:>11}" for column in columns) + "\n")


def print_open(rows: Mapping[str, Row], collected: Collected) -> None:
    print(*(f"{row_id}: {row.text}" for row_id, row in rows.items() if row.answer == "later"), sep="\n")
    print("no test:", *(case for case in known_case_ids() if not collected.levels_by_case.get(case)))


if __name__ == "__main__":
    sys.exit(main())

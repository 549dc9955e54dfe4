"""The frozen ids: rows of the source inventories (A1, R001, AC-01) and reported faults (operator:B01, runtime:L2)."""

from pathlib import Path

FOLDER = Path(__file__).parent


def known_row_ids() -> tuple[str, ...]:
    return _lines("row-ids.txt")


def known_case_ids() -> tuple[str, ...]:
    return _lines("case-ids.txt")


def _lines(name: str) -> tuple[str, ...]:
    return tuple((FOLDER / name).read_text().split())

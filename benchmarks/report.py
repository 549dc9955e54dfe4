"""Writes `docs/performance.md` from the ledger: `python -m benchmarks.report`. Exits 1 if a figure is out of bound."""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.bounds import BOUNDS, is_within_bound
from benchmarks.ledger import Entry, read_entries

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
IMAGES = PAGE.with_name("images")
PLOTS = {
    "shm.svg": "Payloads of several sizes from one process to another, with us and with the peers",
    "overload.svg": "Answers in time at loads up to three times the capacity, with a bounded and an endless queue",
}

HEAD = """# Performance

Generated from `benchmarks/results.json` by `make performance`; nobody types a figure here. `make bench` measures again.

| Figure | Value | Bound | Peer in the same run | Peer's value |
|---|---|---|---|---|
"""


def report(entries: Sequence[Entry]) -> str:
    rows = "".join(_row(entry) for entry in entries)
    plots = "".join(f"\n![{title}](images/{name})\n" for name, title in PLOTS.items() if (IMAGES / name).exists())
    return HEAD + rows + plots + "\n## How each was measured\n\n" + "".join(_origin(entry) for entry in entries)


def _row(entry: Entry) -> str:
    bound = str(BOUNDS.get(entry.id, ""))
    mark = "" if is_within_bound(entry) else " **out of bound**"
    peer_value = f"{_number(entry.peer_value)} {entry.unit}" if entry.peer_value is not None else ""
    value = f"{_number(entry.value)} {entry.unit}{mark}"
    return f"| `{entry.id}` | {value} | {bound} | {entry.peer or ''} | {peer_value} |\n"


def _origin(entry: Entry) -> str:
    return f"- `{entry.id}`: `{entry.command}` at commit {entry.commit}, {entry.date[:10]}, on {entry.machine}\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


def main() -> int:
    entries = read_entries()
    PAGE.write_text(report(entries))
    outside = [entry.id for entry in entries if not is_within_bound(entry)]
    print(f"{PAGE.name}: {len(entries)} figures, out of bound: {', '.join(outside) or 'none'}")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())

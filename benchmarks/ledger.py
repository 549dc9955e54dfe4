"""The ledger of measured figures, `benchmarks/results.json`: one entry for each id, the newest replaces older ones."""

import fcntl
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).with_name("results.json")


@dataclass(frozen=True)
class Entry:
    """One figure. `peer` says what it was compared with in the same run; None where there is no peer."""

    id: str
    value: float
    unit: str
    peer: str | None
    peer_value: float | None
    command: str
    machine: str
    commit: str
    date: str


def write_entry(
    entry_id: str,
    value: float,
    unit: str,
    *,
    command: str,
    peer: tuple[str, float] | None = None,
    on: str | None = None,
    path: Path = RESULTS,
) -> Entry:
    """Stores a figure together with where, when and from which commit it was measured; `on` is another machine."""
    peer_name, peer_value = peer or (None, None)
    entry = Entry(entry_id, value, unit, peer_name, peer_value, command, on or machine(), commit(), _today())
    with _locked(path):
        entries = {old.id: old for old in read_entries(path)} | {entry_id: entry}
        _write(path, [entries[key] for key in sorted(entries)])
    return entry


def read_entries(path: Path = RESULTS) -> list[Entry]:
    return [Entry(**fields) for fields in json.loads(path.read_text())] if path.exists() else []


def machine() -> str:
    """What the figure depends on: processor, cores, memory. No host name."""
    processor = _first_value(Path("/proc/cpuinfo"), "model name") or "unknown processor"
    kilobytes = int((_first_value(Path("/proc/meminfo"), "MemTotal") or "0 kB").split()[0])
    return f"{' '.join(processor.split())}, {os.cpu_count()} cores, {round(kilobytes / 2**20)} GiB"


def commit() -> str:
    """The commit that was checked out, with "+" if files under version control differed from it."""
    head = _git("rev-parse", "--short", "HEAD")
    return head + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")


def _git(*arguments: str) -> str:
    return subprocess.run(
        ("git", *arguments), cwd=RESULTS.parent, capture_output=True, text=True, check=True
    ).stdout.strip()


def _first_value(path: Path, name: str) -> str | None:
    lines = (line.partition(":") for line in path.read_text().splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), None)


def _today() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _write(path: Path, entries: list[Entry]) -> None:
    """By rename, so that a reader never sees half a file."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps([asdict(entry) for entry in entries], indent=2) + "\n")
    draft.replace(path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Two benchmarks that end at once must not lose each other's figures."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)

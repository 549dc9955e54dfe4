"""What the operating system says of processes: descriptors, sockets, memory, children. Our counters are not asked."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessCensus:
    descriptors: int
    sockets: int
    memory_files: int
    children: int
    resident_kib: int


@dataclass(frozen=True)
class Growth:
    """What one process holds more than before; `resident_kib` is judged with slack, everything else exactly."""

    process: str
    what: str
    before: int
    after: int

    def __str__(self) -> str:
        return f"{self.process}: {self.what} {self.before} -> {self.after}"


def census(pid: int) -> ProcessCensus:
    """Raises ProcessLookupError if the process is gone."""
    try:
        links = list(_descriptor_links(pid))
        return ProcessCensus(
            descriptors=len(links),
            sockets=sum(link.startswith("socket:") for link in links),
            memory_files=sum("memfd:" in link or "/dev/shm/" in link for link in links),
            children=sum(parent == pid for _, parent in _parents()),
            resident_kib=_resident_kib(pid),
        )
    except FileNotFoundError as exc:
        raise ProcessLookupError(f"process {pid} is gone") from exc


def growth(before: Mapping[str, ProcessCensus], after: Mapping[str, ProcessCensus], slack_kib: int) -> list[Growth]:
    """What processes hold more than before."""
    return [found for name in before for found in _growth_of(name, before[name], after[name], slack_kib)]


def processes_with(variable: str, value: str) -> set[int]:
    """Every live process that was started with this environment variable, whoever its parent is now."""
    wanted = f"{variable}={value}".encode()
    return {pid for pid in _pids() if wanted in _environment(pid) and not is_zombie(pid)}


def command_lines_naming(text: str) -> list[str]:
    """Of all processes of the machine."""
    return [line for pid in _pids() if text in (line := _command_line(pid))]


def is_running(pid: int) -> bool:
    return (PROC / str(pid)).exists() and not is_zombie(pid)


def is_zombie(pid: int) -> bool:
    return _status(pid, "State").startswith("Z")


def _growth_of(name: str, before: ProcessCensus, after: ProcessCensus, slack_kib: int) -> Iterator[Growth]:
    for what in ("descriptors", "sockets", "memory_files", "children"):
        old, new = getattr(before, what), getattr(after, what)
        if new > old:
            yield Growth(name, what, old, new)
    if after.resident_kib > before.resident_kib + slack_kib:
        yield Growth(name, "resident_kib", before.resident_kib, after.resident_kib)


def _descriptor_links(pid: int) -> Iterator[str]:
    for path in (PROC / str(pid) / "fd").iterdir():
        try:
            yield str(path.readlink())
        except FileNotFoundError:
            continue


def _parents() -> Iterator[tuple[int, int]]:
    for pid in _pids():
        parent = _status(pid, "PPid")
        if parent:
            yield pid, int(parent)


def _resident_kib(pid: int) -> int:
    return int(_status(pid, "VmRSS").split()[0] if _status(pid, "VmRSS") else 0)


def _status(pid: int, field: str) -> str:
    """A line of /proc/PID/status without its name; empty if the process is gone."""
    try:
        text = (PROC / str(pid) / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    found = re.search(rf"^{field}:\s*(.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []


def _command_line(pid: int) -> str:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _pids() -> list[int]:
    return [int(path.name) for path in PROC.iterdir() if path.name.isdecimal()]

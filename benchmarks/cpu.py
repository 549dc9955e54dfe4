"""CPU time of processes, as Linux counts it: in ticks of a hundredth of a second, so it takes many requests to tell."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pids: Iterable[int]) -> float:
    """What these processes and this one have used so far."""
    return time.process_time() + sum(map(_cpu_s, pids))


def _cpu_s(pid: int) -> float:
    # The second field is the name, in parentheses, and may hold anything.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / TICKS_PER_S

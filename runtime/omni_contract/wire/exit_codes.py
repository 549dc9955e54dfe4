"""The exit codes of our processes, which supervisors, pods and people read. docs/operations.md has the same table."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class ExitCode(IntEnum):
    OK = 0
    DEFECT = 1
    MISCONFIGURED = 2
    LOAD_FAILED = 3
    ENGINE_DIED = 4
    LISTEN_FAILED = 5
    OUT_OF_MEMORY = 6
    LOAD_TIMED_OUT = 7
    DRAIN_TIMED_OUT = 8


MEANINGS: Mapping[int, str] = MappingProxyType(
    {
        ExitCode.OK: "it was told to end and has finished what it ran",
        ExitCode.DEFECT: "a defect of ours",
        ExitCode.MISCONFIGURED: "its command line, its file or its environment is wrong",
        ExitCode.LOAD_FAILED: "the engine cannot load",
        ExitCode.ENGINE_DIED: "the engine died",
        ExitCode.LISTEN_FAILED: "an address or port is taken, or not this host's",
        ExitCode.OUT_OF_MEMORY: "too little memory to load",
        ExitCode.LOAD_TIMED_OUT: "loading took longer than its time limit",
        ExitCode.DRAIN_TIMED_OUT: "the drain's time was up before all work was done",
    }
)

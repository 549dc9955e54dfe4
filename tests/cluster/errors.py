"""What can go wrong while a test cluster is made. Each message names the thing, the value and the way out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class ClusterError(Exception):
    """The command line prints it without a traceback."""


class CommandFailed(ClusterError):
    def __init__(self, argv: Sequence[str], status: int, output: str) -> None:
        self.argv, self.status, self.output = tuple(argv), status, output
        super().__init__(f"{' '.join(argv)}\nended with status {status}:\n{output.strip()}")


class ProcessDied(ClusterError):
    def __init__(self, name: str, log: Path) -> None:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log.exists() else "(no log)"
        super().__init__(f"{name} ended before it was ready; its last lines in {log}:\n{tail}")


class NotReady(ClusterError):
    def __init__(self, what: str, timeout_s: float, last: str) -> None:
        super().__init__(f"{what} was not ready within {timeout_s:g} s; the last answer was: {last}")


class PortTaken(ClusterError):
    def __init__(self, port: int) -> None:
        super().__init__(
            f"port 127.0.0.1:{port} is taken by another program; "
            "end that program, or name other ports with --port-base (control plane), --api-port or --node-port (kind)"
        )


class MissingProgram(ClusterError):
    def __init__(self, name: str, way_out: str) -> None:
        super().__init__(f"the program {name!r} is not on this machine; {way_out}")


class NotRoot(ClusterError):
    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs root on this machine; run the same command as root (for example with sudo -E)")

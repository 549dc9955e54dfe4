"""Starts background processes, remembers them in a file, and ends those and no others.

A process is ours only while its start time and its program are those that the file names: a number alone may by now
belong to somebody else's process.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.cluster.errors import MissingProgram, NotReady, ProcessDied
from tests.support.waiting import becomes, looks

KILL_TIMEOUT_S = 10


@dataclass(frozen=True)
class Identity:
    """What tells a process from a later one with the same number."""

    pid: int
    started_ticks: int
    program: str

    @classmethod
    def of(cls, pid: int, program: str) -> Identity:
        return cls(pid, _started_ticks(pid), program)

    def is_running(self) -> bool:
        self._reap()
        return _started_ticks(self.pid) == self.started_ticks and self._is_the_program()

    def _is_the_program(self) -> bool:
        """A dying process has no command line any more, and its number is not given away before it is dead."""
        words = _command_line(self.pid)
        return not any(words) or self.program in words

    def _reap(self) -> None:
        """A child of this very process that has ended stays visible as a zombie until somebody waits for it."""
        with suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)


@dataclass(frozen=True)
class Background:
    """One named background process of a state folder: `NAME.pid` and `NAME.log` there."""

    folder: Path
    name: str

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def pid_file(self) -> Path:
        return self.folder / f"{self.name}.pid"

    @property
    def identity(self) -> Identity | None:
        """The process that the pid file names, if that very process still runs."""
        try:
            known = Identity(**json.loads(self.pid_file.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None  # never started, or the start was killed while it wrote the file
        return known if known.is_running() else None

    @property
    def is_running(self) -> bool:
        return self.identity is not None

    def start(
        self, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, dies_with_parent: bool = False
    ) -> None:
        """Start the program unless it runs. `dies_with_parent`: the kernel kills it when the calling thread ends."""
        if self.is_running:
            return
        words = [str(word) for word in argv]
        program = words[0]
        if dies_with_parent:
            words = ["setpriv", "--pdeathsig", "KILL", *words]
        self.folder.mkdir(parents=True, exist_ok=True)
        self._remember(_spawn(words, os.environ if env is None else env, self.log), program)

    def wait_until(self, is_ready: Callable[[], bool], timeout_s: float) -> None:
        for is_so in looks(is_ready, timeout_s):
            if is_so:
                return
            if not self.is_running:
                raise ProcessDied(self.name, self.log)
        raise NotReady(self.name, timeout_s, f"see {self.log}")

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        self.stop(grace_s=0)

    def stop(self, grace_s: float = 3) -> None:
        """Ask the process to end and, after the grace, end it; returns when it is gone."""
        identity = self.identity
        if identity is not None:
            if grace_s > 0:
                _signal(identity, signal.SIGTERM)
                becomes(lambda: not identity.is_running(), grace_s)
            _signal(identity, signal.SIGKILL)
            becomes(lambda: not identity.is_running(), KILL_TIMEOUT_S)
        self.pid_file.unlink(missing_ok=True)

    def _remember(self, pid: int, program: str) -> None:
        unfinished = self.pid_file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(asdict(Identity.of(pid, program))))
        unfinished.rename(self.pid_file)


def _spawn(words: list[str], env: Mapping[str, str], log: Path) -> int:
    """Start a program in a session of its own, so that Ctrl-C in the caller's terminal does not reach it."""
    output = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), output, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        return os.posix_spawnp(words[0], words, env, file_actions=files, setsid=True)
    except FileNotFoundError as exc:
        raise MissingProgram(words[0], "install it and run the command again") from exc


def _signal(identity: Identity, number: signal.Signals) -> None:
    if identity.is_running():
        with suppress(ProcessLookupError):  # it may end between the check and the signal
            os.kill(identity.pid, number)


def _started_ticks(pid: int) -> int:
    """The kernel's start time of a process, or -1 when it is gone.

    A zombie whose other threads still end is not gone: until they have, it holds its ports.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        threads = sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return -1
    return -1 if fields[0] in "ZX" and threads <= 1 else int(fields[19])


def _command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []

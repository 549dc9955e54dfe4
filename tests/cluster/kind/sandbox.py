"""A dockerd of our own inside private network, mount and process namespaces.

Its bridges, firewall rules, mounts and containers exist only in there: ending the first process ends all of it, even
after a crash, and nothing is left to be cleaned but a few empty cgroup folders.
"""

from __future__ import annotations

import hashlib
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.commands import run
from tests.cluster.errors import CommandFailed
from tests.cluster.processes import Background
from tests.support.waiting import becomes

FILES = Path(__file__).parent / "files"
CGROUPS = Path("/sys/fs/cgroup")
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
SYS_RESOURCE_BIT = 24
INOTIFY_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_NEEDED = 512
START_TIMEOUT_S = 60
STOP_GRACE_S = 15
CGROUPS_TIMEOUT_S = 10
CPU_WEIGHT = 16
"""A cluster is dozens of processes, but beside other jobs its cgroup would count as one of the machine's tasks, and
a busy machine would starve it: probes and leases time out.
"""
NAMESPACES = (
    "unshare",
    "--net",
    "--mount",
    "--propagation=slave",
    "--pid",
    "--mount-proc",
    "--fork",
    "--kill-child=SIGKILL",
)
ALLOWED_RUNC = ("--add-runtime", f"allowed={FILES / 'runc-allowed-capabilities.sh'}", "--default-runtime=allowed")


@dataclass(frozen=True)
class Sandbox:
    """`state` holds the pid file, the log and the socket; `data` what Docker keeps from one start to the next."""

    state: Path
    data: Path
    name: str

    @property
    def socket(self) -> Path:
        return self.state / "docker.sock"

    @property
    def environment(self) -> dict[str, str]:
        """For docker and kind, which need no more than the socket: Debian's docker, as it fits Debian's dockerd."""
        return {**os.environ, "DOCKER_HOST": f"unix://{self.socket}", "PATH": SYSTEM_PATH}

    @property
    def process(self) -> Background:
        return Background(self.state, "sandbox")

    @property
    def network_namespace(self) -> Path | None:
        identity = self.process.identity
        return None if identity is None else Path(f"/proc/{identity.pid}/ns/net")

    def docker(self, *arguments: str | Path, stdin: str | None = None) -> str:
        return run(["docker", *arguments], env=self.environment, stdin=stdin)

    def is_up(self) -> bool:
        if not self.process.is_running or not self.socket.exists():
            return False
        try:
            self.docker("info")
        except CommandFailed:
            return False
        return True

    def start(self) -> None:
        """Start dockerd unless it answers; what a killed run has left is ended first."""
        if self.is_up():
            return
        self.stop()
        self.state.mkdir(parents=True, exist_ok=True)
        self.data.mkdir(parents=True, exist_ok=True)
        self._raise_inotify_limit()
        self._weigh()
        program: list[str | Path] = [*NAMESPACES, "tini", "-g", "--", FILES / "sandbox.sh", *self._dockerd()]
        self.process.start(program, env=self.environment)
        self.process.wait_until(self.is_up, START_TIMEOUT_S)

    def stop(self) -> None:
        """End dockerd and then, with the first process of the namespaces, whatever is left in there."""
        self._end_dockerd()
        self.process.kill()
        self.socket.unlink(missing_ok=True)
        # The kernel empties a cgroup a moment after its last process has ended.
        becomes(self._remove_cgroups, CGROUPS_TIMEOUT_S)
        self._restore_inotify_limit()

    def cgroups(self) -> list[Path]:
        """The folders of our containers in each cgroup hierarchy (one on cgroup v2, many on v1)."""
        return [path for path in (*CGROUPS.glob(f"*/{self._cgroup}"), CGROUPS / self._cgroup) if path.is_dir()]

    @property
    def _cgroup(self) -> str:
        """One name for each data folder, since clusters of two caches may have the same name."""
        return f"omni-test-{self.name}-{hashlib.sha256(bytes(self.data)).hexdigest()[:8]}"

    def _dockerd(self) -> list[str]:
        options = [
            "dockerd",
            f"--data-root={self.data}",
            "--exec-root=/run/docker",
            "--pidfile=/run/docker.pid",
            f"--host=unix://{self.socket}",
            "--storage-driver=overlay2",
            f"--cgroup-parent=/{self._cgroup}",
        ]
        return options if may_raise_limits() else [*options, *ALLOWED_RUNC]

    def _end_dockerd(self) -> None:
        identity = self.process.identity
        first = None if identity is None else first_child(identity.pid)
        if first is None:
            return
        os.kill(first, signal.SIGTERM)
        becomes(lambda: not self.process.is_running, STOP_GRACE_S)

    def _weigh(self) -> None:
        """Makes the cgroup before dockerd does, which takes what is there. A hierarchy without weights has none."""
        has_v1 = (CGROUPS / "cpu").is_dir()
        folder = (CGROUPS / "cpu" if has_v1 else CGROUPS) / self._cgroup
        folder.mkdir(exist_ok=True)
        name, normal = ("cpu.shares", 1024) if has_v1 else ("cpu.weight", 100)
        if (folder / name).exists():
            (folder / name).write_text(str(CPU_WEIGHT * normal))

    def _remove_cgroups(self) -> bool:
        """Whether none is left. Only empty ones can be removed."""
        for top in self.cgroups():
            for folder, _, _ in os.walk(top, topdown=False):  # one that disappears meanwhile is passed over
                with suppress(OSError):
                    Path(folder).rmdir()
        return not self.cgroups()

    @property
    def _earlier_limit(self) -> Path:
        return self.state / "inotify-limit-before"

    def _raise_inotify_limit(self) -> None:
        """Node containers use many inotify instances; the limit is the host's, so the old value is kept for `stop`."""
        limit = INOTIFY_LIMIT.read_text()
        if int(limit) < INOTIFY_NEEDED:
            self._earlier_limit.write_text(limit)
            INOTIFY_LIMIT.write_text(str(INOTIFY_NEEDED))

    def _restore_inotify_limit(self) -> None:
        if self._earlier_limit.exists():
            INOTIFY_LIMIT.write_text(self._earlier_limit.read_text())
            self._earlier_limit.unlink()


def may_raise_limits(status: Path = Path("/proc/self/status")) -> bool:
    """Whether root has CAP_SYS_RESOURCE here; some virtual machines take it away from everybody."""
    bounding = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("CapBnd:"))
    return bool(int(bounding, 16) >> SYS_RESOURCE_BIT & 1)


def first_child(pid: int) -> int | None:
    """The first process of the namespaces, which is the only child of the program that made them."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(children[0]) if children else None

"""A real Kubernetes control plane as plain processes on loopback: etcd, kube-apiserver and, by size, controllers, a
scheduler and KWOK's fake nodes. Several run side by side, each with a state folder and ports of its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cluster import control_flags as flags
from tests.cluster import fake_nodes
from tests.cluster.certificates import Authority
from tests.cluster.commands import run
from tests.cluster.control_files import ADMIN, files_of, kubeconfig, prepare
from tests.cluster.control_flags import Files, Ports
from tests.cluster.errors import NotReady, PortTaken
from tests.cluster.kubeconfig import Token, write_kubeconfig
from tests.cluster.pools import POOLS, Pool
from tests.cluster.ports import is_free, require_free
from tests.cluster.processes import Background
from tests.cluster.programs import Programs
from tests.cluster.rest import Rest
from tests.cluster.steps import Steps
from tests.support.waiting import becomes

READY_TIMEOUT_S = 60
FIRST_FREE_PORT = 20000
TOKEN_REQUEST = {
    "apiVersion": "authentication.k8s.io/v1",
    "kind": "TokenRequest",
    "spec": {"expirationSeconds": 86400},
}


class Size(StrEnum):
    """How much of a control plane runs. API: no garbage collection, no service account tokens, no pods."""

    API = "api"
    CONTROLLERS = "controllers"
    NODES = "nodes"


@dataclass(frozen=True)
class ControlPlane:
    """`start` completes whatever does not run, so it also recovers after a crash; `stop` leaves no process.

    With `dies_with_parent` the kernel ends the programs when the thread that started them ends, so that a killed test
    run leaves nothing behind.
    """

    state: Path
    programs: Programs
    ports: Ports
    size: Size = Size.NODES
    pools: Sequence[Pool] = POOLS
    dies_with_parent: bool = False
    steps: Steps = field(default_factory=Steps)

    # ---- what a client needs

    @property
    def kubeconfig(self) -> Path:
        """As an administrator whom no rule binds."""
        return kubeconfig(self.state, ADMIN)

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.ports.api}"

    @property
    def ca(self) -> Path:
        return self.files.authority.certificate

    @property
    def audit_log(self) -> Path:
        return self.files.audit_log

    @property
    def rest(self) -> Rest:
        return Rest(self.ports.api, self.ca, self._authority.pair_of(ADMIN))

    def kubeconfig_for_user(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for a user with only the rights that RBAC gives to the user or the groups."""
        name = f"user-{user.replace('/', '-').replace(':', '-')}"
        pair = self._authority.client(name, user, groups)
        return write_kubeconfig(kubeconfig(self.state, name), self.server, self.ca, pair)

    def kubeconfig_for_service_account(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a fresh token, good for a day, of a service account that exists."""
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        made = self.rest.post(f"{account}/token", TOKEN_REQUEST)
        path = kubeconfig(self.state, f"account-{namespace}-{name}")
        return write_kubeconfig(path, self.server, self.ca, Token(made["status"]["token"]))

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        env = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        return run([self.programs["kubectl"], *arguments], env=env, stdin=stdin)

    # ---- life

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        with self.steps.step("certificates, kubeconfigs"):
            prepare(self.state, self.ports)
        with self.steps.step(f"etcd and kube-apiserver on 127.0.0.1:{self.ports.api}"):
            self._start_api()
        if self.size is not Size.API:
            with self.steps.step("kube-controller-manager"):
                self._start_controllers()
        if self.size is Size.NODES:
            with self.steps.step(f"kube-scheduler, KWOK, {sum(pool.nodes for pool in self.pools)} nodes Ready"):
                self._start_nodes()

    def stop(self) -> None:
        """End every program, at once: what they would save in the meantime is thrown away with the state."""
        for name in reversed(self._names):
            self.process(name).kill()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.state, ignore_errors=True)

    def running(self) -> list[str]:
        return [name for name in self._names if self.process(name).is_running]

    def process(self, name: str) -> Background:
        """One program of the plane, for tests that end, stop or inspect it."""
        return Background(self.state, name)

    # ---- faults

    def kill_apiserver(self) -> None:
        self.process("kube-apiserver").kill()

    def restart_apiserver(self) -> None:
        """Also restarts its clients of the plane: else the first pod afterwards waits for more than a minute."""
        for name in ("kwok", "kube-scheduler", "kube-controller-manager", "kube-apiserver"):
            self.process(name).kill()
        self.start()

    # ---- inside

    @property
    def files(self) -> Files:
        return files_of(self.state)

    @property
    def _authority(self) -> Authority:
        return Authority(self.ca.parent)

    @property
    def _names(self) -> tuple[str, ...]:
        return ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")

    def _start_api(self) -> None:
        self._launch("etcd", flags.etcd(self.ports, self.files), self.ports.etcd)
        self._launch("kube-apiserver", flags.apiserver(self.ports, self.files), self.ports.api)
        self.process("kube-apiserver").wait_until(self.rest.is_ready, READY_TIMEOUT_S)

    def _start_controllers(self) -> None:
        self._launch("kube-controller-manager", flags.controllers(self.ports, self.files), self.ports.controllers)
        if self.size is Size.CONTROLLERS:
            self._wait("service account default", lambda: fake_nodes.has_default_account(self.rest))

    def _start_nodes(self) -> None:
        self._launch("kube-scheduler", flags.scheduler(self.ports, self.files), self.ports.scheduler)
        fake_nodes.create(self.rest, self.pools)
        if not self.process("kwok").is_running:
            fake_nodes.forget_leases(self.rest, self.pools)
        self._launch("kwok", flags.kwok(self.files, self.programs.kept("kwok") / "kustomize" / "stage"))
        self._wait("fake nodes", lambda: fake_nodes.are_ready(self.rest, self.pools))

    def _launch(self, name: str, arguments: Sequence[str], port: int | None = None) -> None:
        process = self.process(name)
        if process.is_running:
            return
        require_free([] if port is None else [port])
        process.start([self.programs[name], *arguments], dies_with_parent=self.dies_with_parent)

    def _wait(self, what: str, is_ready: Callable[[], bool]) -> None:
        if not becomes(is_ready, READY_TIMEOUT_S):
            raise NotReady(what, READY_TIMEOUT_S, f"see the logs in {self.state}; running: {self.running()}")


def free_ports(first: int = FIRST_FREE_PORT) -> Ports:
    """Ports that nothing listens on now; each process looks from a place of its own, so two seldom pick the same."""
    for base in range(first + (os.getpid() * 10) % 8000, 32000, 10):
        ports = Ports(base)
        if all(is_free(port) for port in ports.all()):
            return ports
    raise PortTaken(first)

"""A model's workers and frontends as real processes without a supervisor, so that a test can end each of them."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from socket import socket
from typing import IO

from omni_contract.resolve import ResolvedModel
from omni_runtime.local.devices import Machine
from omni_runtime.local.health import wait_until_ready
from omni_runtime.local.plan import LocalPlan, Place, ProcessPlan, local_plan
from tests.support.process_census import ProcessCensus, census, processes_with
from tests.support.waiting import settled

MARK = "OMNI_TEST_RUN"
READY_TIMEOUT_S = 120
NO_DEVICES = Machine({})
CHILDREN_END_S = 10


class ModelProcesses:
    """Processes by name: "denoiser" or "denoiser-0", "denoiser-1" …; "frontend-0" and so on."""

    def __init__(self, plans: list[ProcessPlan], directory: Path) -> None:
        self.plans = {plan.name: plan for plan in plans}
        self._directory = directory
        self._mark = secrets.token_hex(8)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def stages(self) -> list[str]:
        return [name for name in self.plans if not name.startswith("frontend")]

    @property
    def urls(self) -> list[str]:
        """Base URL of each frontend."""
        return [plan.health.removesuffix("/readyz") for name, plan in self.plans.items() if name not in self.stages]

    async def start(self, *names: str, patience_s: float = READY_TIMEOUT_S) -> None:
        """Start all (or those named) and wait until each is ready."""
        for name in names or self.plans:
            self.spawn(name)
        await self.wait_ready(*names, patience_s=patience_s)

    def spawn(self, name: str) -> None:
        plan = self.plans[name]
        with self._log(name, "ab") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-m", plan.module, *plan.arguments],
                env={**os.environ, **plan.environment, MARK: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    async def wait_ready(self, *names: str, patience_s: float = READY_TIMEOUT_S) -> None:
        async with asyncio.timeout(patience_s):
            await asyncio.gather(*(self._wait_ready(name) for name in names or self.plans))

    def signal(self, name: str, number: signal.Signals) -> None:
        self._running[name].send_signal(number)

    def kill(self, name: str) -> None:
        self.signal(name, signal.SIGKILL)
        self._running[name].wait()

    async def wait(self, name: str, timeout_s: float) -> int:
        """The exit code, once the process has ended."""
        return await asyncio.to_thread(self._running[name].wait, timeout_s)

    def has_ended(self, name: str) -> bool:
        return self._running[name].poll() is not None

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def census(self) -> dict[str, ProcessCensus]:
        return {name: census(process.pid) for name, process in self._running.items() if process.poll() is None}

    def log(self, name: str) -> str:
        with self._log(name, "rb") as log:
            return log.read().decode()

    def end(self) -> None:
        for process in self._running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
        # What they had started ends with them, a moment later.
        left = settled(lambda: processes_with(MARK, self._mark), lambda found: not found, CHILDREN_END_S)
        assert left == set()

    async def _wait_ready(self, name: str) -> None:
        """Fails with the log when the process ends first."""
        waiting = asyncio.create_task(wait_until_ready(self.plans[name].health))
        while not waiting.done():
            await asyncio.wait({waiting}, timeout=0.2)
            if not waiting.done() and self._running[name].poll() is not None:
                waiting.cancel()
                raise AssertionError(f"{name} ended with {self._running[name].returncode}:\n{self.log(name)}")
        await waiting

    def _log(self, name: str, mode: str) -> IO[bytes]:
        return (self._directory / f"{name}.log").open(mode)


@contextmanager
def model_processes(
    model: ResolvedModel,
    directory: Path,
    frontends: int = 1,
    volumes: Path | None = None,
    machine: Machine = NO_DEVICES,
) -> Iterator[ModelProcesses]:
    """Nothing runs yet; whatever was started is gone at the end."""
    ports = free_ports(frontends)
    plans = [_plan(model, directory, port, volumes, machine) for port in ports]
    for path, text in plans[0].files.items():
        path.write_text(text)
    for link, folder in plans[0].links.items():
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(folder)
    named = [replace(plan.frontend, name=f"frontend-{index}") for index, plan in enumerate(plans)]
    processes = ModelProcesses([*plans[0].stages, *named], directory)
    try:
        yield processes
    finally:
        processes.end()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now, all different."""
    sockets = [socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _plan(model: ResolvedModel, directory: Path, port: int, volumes: Path | None, machine: Machine) -> LocalPlan:
    place = Place(
        directory=directory,
        host="127.0.0.1",
        port=port,
        machine=machine,
        volumes={} if volumes is None else {"models": volumes},
        created=1_700_000_000,
    )
    return local_plan(model, place)

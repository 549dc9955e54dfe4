"""Keeps one process running: starts it, tells when it is ready, starts it again after a crash, stops it when asked."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from omni_runtime.local.backoff import BackOff
from omni_runtime.local.console import Console
from omni_runtime.local.errors import StartError
from omni_runtime.local.health import wait_until_ready
from omni_runtime.local.log_line import read_log_line
from omni_runtime.local.plan import ProcessPlan
from omni_runtime.local.process import describe_exit

DEFAULT_BACK_OFF = BackOff()
NEVER_READY = "was not ready within {:.0f} s"


class Child(Protocol):
    """A running process; see `process.ChildProcess`."""

    async def read_lines(self, take: Callable[[str], None]) -> None: ...

    async def wait(self) -> int: ...

    async def stop(self, timeout_s: float) -> None: ...

    def kill(self) -> None: ...


Start: TypeAlias = Callable[[ProcessPlan], Awaitable[Child]]


class Keeper:
    def __init__(
        self,
        plan: ProcessPlan,
        start: Start,
        console: Console,
        back_off: BackOff = DEFAULT_BACK_OFF,
        wait_ready: Callable[[str], Awaitable[None]] = wait_until_ready,
    ) -> None:
        self.plan = plan
        self.is_ready = asyncio.Event()
        """Set once it was ready for the first time; a later crash does not clear it."""
        self._start = start
        self._console = console
        self._back_off = back_off
        self._wait_ready = wait_ready
        self._stopping = asyncio.Event()
        self._process: Child | None = None
        self._last_line = ""

    async def run(self) -> None:
        """Returns after `stop`; raises StartError if the process never became ready, which a restart would not cure."""
        crashes = 0
        while True:
            started_s = self._now()
            reason = await self._run_once()
            if self._stopping.is_set():
                self._console.ended(self.plan.name, "stopped")
                return
            if not self.is_ready.is_set():
                self._console.ended(self.plan.name, reason)
                raise StartError(self.plan.name, reason, self._last_line)
            crashes = self._back_off.crashes_after(crashes, self._now() - started_s)
            await self._wait_before_restart(reason, self._back_off.delay_s(crashes))
            if self._stopping.is_set():
                return

    async def stop(self) -> None:
        """Let it drain for as long as its plan allows."""
        self._stopping.set()
        if self._process is not None:
            await self._process.stop(self.plan.stop_timeout_s)

    def kill(self) -> None:
        self._stopping.set()
        if self._process is not None:
            self._process.kill()

    async def _run_once(self) -> str:
        """One life of the process; why it ended."""
        self._console.starting(self.plan.name)
        process = self._process = await self._start(self.plan)
        if self._stopping.is_set():
            process.kill()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(process.read_lines(self._take_line))
                readiness = tasks.create_task(self._announce_ready(process))
                code = await process.wait()
                was_late = readiness.done() and not readiness.result()
                readiness.cancel()
        finally:
            process.kill()
            self._process = None
        return NEVER_READY.format(self.plan.start_timeout_s) if was_late else describe_exit(code)

    async def _announce_ready(self, process: Child) -> bool:
        """False after ending a process that took too long."""
        try:
            async with asyncio.timeout(self.plan.start_timeout_s):
                await self._wait_ready(self.plan.health)
        except TimeoutError:
            process.kill()
            return False
        self._console.ready(self.plan.name)
        self.is_ready.set()
        return True

    async def _wait_before_restart(self, reason: str, delay_s: float) -> None:
        self._console.ended(self.plan.name, f"{reason}; starting it again in {delay_s:g} s")
        try:
            async with asyncio.timeout(delay_s):
                await self._stopping.wait()
        except TimeoutError:
            return

    def _take_line(self, line: str) -> None:
        self._last_line = read_log_line(line).message or self._last_line
        self._console.log(self.plan.name, line)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

"""Runs a local plan: all processes at once, ready when all are, drained on the first signal, ended on the second."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping

from omni_runtime.local.console import Console
from omni_runtime.local.errors import ServeError
from omni_runtime.local.keeper import Keeper
from omni_runtime.local.plan import LocalPlan, ProcessPlan
from omni_runtime.local.process import Bond, ChildProcess

STOPPED = 0
STOPPED_AT_ONCE = 130
"""As a shell reports a program that Ctrl-C ended."""
REFRESH_S = 1.0

WhenReady = Callable[[], Awaitable[None]]


class Supervisor:
    def __init__(
        self, plan: LocalPlan, environment: Mapping[str, str], console: Console, when_ready: WhenReady
    ) -> None:
        self._console = console
        self._when_ready = when_ready
        self._bond = Bond()
        self._environment = environment
        self._services = [Keeper(one, self._start_child, console) for one in plan.services]
        self._stages = [Keeper(one, self._start_child, console) for one in plan.stages]
        self._frontend = Keeper(plan.frontend, self._start_child, console)
        self._stop = asyncio.Event()
        self._stop_now = False

    async def run(self) -> int:
        """Must run in the main thread. Returns the exit code; raises ServeError if a process never became ready."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)
        failures: tuple[BaseException, ...] = ()
        try:
            await self._run_all()
        except* ServeError as group:
            failures = group.exceptions
        finally:
            self._bond.close()
        if failures:
            raise failures[0]
        return STOPPED_AT_ONCE if self._stop_now else STOPPED

    async def _run_all(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for keeper in self._keepers:
                tasks.create_task(keeper.run())
            refreshing = tasks.create_task(self._refresh())
            starting = tasks.create_task(self._announce())
            await self._stop.wait()
            starting.cancel()
            await self._stop_all()
            refreshing.cancel()

    async def _start_child(self, plan: ProcessPlan) -> ChildProcess:
        return await ChildProcess.start(plan, self._bond, self._environment)

    async def _announce(self) -> None:
        for keeper in self._keepers:
            await keeper.is_ready.wait()
        await self._when_ready()

    async def _stop_all(self) -> None:
        """The frontend first, so that what still runs finds its stages; for the same reason services last."""
        await self._frontend.stop()
        await asyncio.gather(*(stage.stop() for stage in self._stages))
        await asyncio.gather(*(service.stop() for service in self._services))

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            self._console.refresh()

    def _on_signal(self) -> None:
        if not self._stop.is_set():
            self._console.say("stopping: finishing what runs; press Ctrl-C again to stop at once")
            self._stop.set()
            return
        self._stop_now = True
        for keeper in self._keepers:
            keeper.kill()

    @property
    def _keepers(self) -> list[Keeper]:
        return [*self._services, *self._stages, self._frontend]

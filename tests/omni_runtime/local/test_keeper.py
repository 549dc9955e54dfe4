import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import StringIO

import pytest

from omni_runtime.local.backoff import BackOff
from omni_runtime.local.console import Console
from omni_runtime.local.errors import StartError
from omni_runtime.local.keeper import Keeper
from omni_runtime.local.plan import ProcessPlan

AT_ONCE = BackOff(first_s=0.0, longest_s=0.0)


class FakeChild:
    """A process that ends when the test says so, or when it is stopped."""

    def __init__(self, lines: tuple[str, ...] = ()) -> None:
        self.code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.lines = lines
        self.stops: list[float] = []

    async def read_lines(self, take: Callable[[str], None]) -> None:
        for line in self.lines:
            take(line)

    async def wait(self) -> int:
        return await asyncio.shield(self.code)

    async def stop(self, timeout_s: float) -> None:
        self.stops.append(timeout_s)
        self.exit(0)

    def kill(self) -> None:
        self.exit(-9)

    def exit(self, code: int) -> None:
        if not self.code.done():
            self.code.set_result(code)


class Stage:
    """A keeper with fake processes: `children` in the order in which they were started."""

    def __init__(self, start_timeout_s: float = 60, lines: tuple[str, ...] = (), is_ready: bool = True) -> None:
        self.children: list[FakeChild] = []
        self.started = asyncio.Condition()
        self.ready = asyncio.Event()
        self.output = StringIO()
        self.lines = lines
        if is_ready:
            self.ready.set()
        plan = ProcessPlan("denoiser", "module", (), {}, "unix:x", start_timeout_s, stop_timeout_s=7)
        console = Console(self.output, asyncio.get_running_loop().time, name_width=8)
        self.keeper = Keeper(plan, self.start, console, AT_ONCE, self.wait_ready)

    async def start(self, plan: ProcessPlan) -> FakeChild:
        async with self.started:
            self.children.append(FakeChild(self.lines))
            self.started.notify_all()
        return self.children[-1]

    async def wait_ready(self, health: str) -> None:
        await self.ready.wait()

    async def child(self, number: int) -> FakeChild:
        async with self.started:
            await self.started.wait_for(lambda: len(self.children) > number)
        return self.children[number]


@asynccontextmanager
async def running(stage: Stage) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(stage.keeper.run())
    yield task
    await stage.keeper.stop()
    async with asyncio.timeout(5):
        await task


async def test_a_crashed_process_is_started_again_and_the_reason_told() -> None:
    stage = Stage()
    async with running(stage):
        await stage.keeper.is_ready.wait()
        (await stage.child(0)).exit(-11)
        await stage.child(1)
    assert "was killed by SIGSEGV; starting it again in 0 s" in stage.output.getvalue()


async def test_stopping_lets_the_process_drain_for_as_long_as_its_plan_allows() -> None:
    stage = Stage()
    async with running(stage):
        await stage.keeper.is_ready.wait()
    assert [child.stops for child in stage.children] == [[7]]
    assert stage.output.getvalue().splitlines()[-1] == "denoiser   stopped"


async def test_a_process_that_ends_before_it_was_ready_ends_serve_with_its_last_line() -> None:
    stage = Stage(lines=("no such checkpoint",), is_ready=False)
    task = asyncio.create_task(stage.keeper.run())
    (await stage.child(0)).exit(3)
    with pytest.raises(StartError) as ended:
        await task
    told = "denoiser did not start: exited with code 3 (the engine cannot load); its last line: no such checkpoint"
    assert str(ended.value) == told
    assert len(stage.children) == 1


async def test_a_process_that_takes_too_long_is_ended() -> None:
    stage = Stage(start_timeout_s=0.01, is_ready=False)
    with pytest.raises(StartError, match="was not ready within 0 s"):
        await stage.keeper.run()
    assert stage.children[0].code.result() == -9


async def test_a_second_signal_kills_at_once() -> None:
    stage = Stage()
    async with running(stage):
        await stage.keeper.is_ready.wait()
        stage.keeper.kill()
        assert await stage.children[0].wait() == -9
    assert len(stage.children) == 1


async def test_a_cancelled_keeper_leaves_no_process() -> None:
    stage = Stage()
    task = asyncio.create_task(stage.keeper.run())
    child = await stage.child(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert child.code.result() == -9

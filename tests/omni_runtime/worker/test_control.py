"""What each control call means in each state, on a stage without gRPC."""

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.engines.fake import FakeEngine
from omni_runtime.engines.protocol import EngineDiedError, ReportLoading, SleepLevel, StageRequest
from omni_runtime.worker.control import MAX_PROFILE_STEPS, Control, ControlError, Refusal
from omni_runtime.worker.session import FrontendSession
from omni_runtime.worker.stage import Stage
from omni_runtime.worker.states import ANSWERED, Call, State
from tests.omni_runtime.worker.engines import GatedEngine
from tests.omni_runtime.worker.frontend import serving, settled, start
from tests.omni_runtime.worker.stages import MakeStage, fake

PATIENCE_S = 60


class SleepyEngine(GatedEngine):
    """Sleeps and wakes as the test says: `failure` is raised by the next change, `bed` holds it back while closed."""

    def __init__(self, freed: int = 7) -> None:
        super().__init__()
        self.level = 0
        self.is_changing = False
        self.failure: Exception | None = None
        self.bed = asyncio.Event()
        self.bed.set()
        self._freed = freed

    async def sleep(self, level: SleepLevel) -> int:
        await self._change()
        self.level = level
        return self._freed

    async def wake(self, report: ReportLoading) -> None:
        await self._change()
        self.level = 0

    async def _change(self) -> None:
        self.is_changing = True
        await self.bed.wait()
        self.is_changing = False
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure


def control_of(stage: Stage, profile_dir: Path | None = None) -> Control:
    return Control(stage, "denoiser-0", profile_dir, now=lambda: datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC))


def calls(control: Control) -> dict[Call, Callable[[], Awaitable[object]]]:
    return {
        Call.SLEEP: lambda: control.sleep(1, PATIENCE_S),
        Call.WAKE: control.wake,
        Call.START_PROFILE: lambda: control.start_profile(3),
        Call.STOP_PROFILE: control.stop_profile,
        Call.RESET_CACHE: control.reset_cache,
        Call.DRAIN: lambda: control.drain(PATIENCE_S),
    }


@asynccontextmanager
async def running_request(stage: Stage):
    """One request is inside the gated engine until its gate opens."""
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"))
        await frontend.until(lambda: stage.capacity.running == 1)
        yield frontend


async def refusal_of(call: Awaitable[object]) -> ControlError:
    with pytest.raises(ControlError) as refused:
        await call
    return refused.value


@pytest.mark.parametrize(
    ("call", "state"),
    [(call, state) for call in Call for state in State if call is not Call.STATS and state not in ANSWERED[call]],
)
async def test_a_call_in_a_state_outside_the_table_is_refused_with_both_named(
    make_stage: MakeStage, tmp_path: Path, call: Call, state: State
) -> None:
    stage = make_stage(fake(), state=state)
    refused = await refusal_of(calls(control_of(stage, tmp_path))[call]())
    assert refused.refusal is Refusal.WRONG_STATE
    assert f"is {state}; {call} needs one that is" in str(refused)
    assert stage.state is state


@pytest.mark.parametrize("call", [Call.SLEEP, Call.WAKE, Call.START_PROFILE, Call.STOP_PROFILE, Call.RESET_CACHE])
async def test_an_engine_without_the_capability_is_named_in_the_refusal(
    make_stage: MakeStage, tmp_path: Path, call: Call
) -> None:
    refused = await refusal_of(calls(control_of(make_stage(GatedEngine()), tmp_path))[call]())
    assert refused.refusal is Refusal.NOT_SUPPORTED
    assert str(refused) == f'{call}: the fake engine of stage "denoiser" cannot do that'


async def test_sleep_gives_memory_back_and_wake_takes_it_again(make_stage: MakeStage) -> None:
    engine = SleepyEngine()
    stage = make_stage(engine)
    control = control_of(stage)
    assert await control.sleep(2, PATIENCE_S) == 7
    assert (stage.state, engine.level, control.stats().sleep_level) == (State.ASLEEP, 2, 2)
    assert (stage.load().draining, stage.load().asleep) == (True, True)
    await control.wake()
    assert (stage.state, engine.level, control.stats().sleep_level) == (State.READY, 0, 0)
    assert (stage.load().draining, stage.load().asleep) == (False, False)


async def test_what_is_so_already_is_answered_and_nothing_is_done(make_stage: MakeStage) -> None:
    engine = SleepyEngine()
    control = control_of(make_stage(engine))
    engine.failure = AssertionError("it is awake")
    await control.wake()
    engine.failure = None
    await control.sleep(1, PATIENCE_S)
    engine.failure = AssertionError("it sleeps")
    assert await control.sleep(1, PATIENCE_S) == 0
    refused = await refusal_of(control.sleep(2, PATIENCE_S))
    assert "is asleep at level 1; wake it before it sleeps at 2" in str(refused)


async def test_of_two_who_ask_at_once_one_is_refused(make_stage: MakeStage, tmp_path: Path) -> None:
    engine = SleepyEngine()
    control = control_of(make_stage(engine))
    for call in (lambda: control.sleep(1, PATIENCE_S), control.wake):
        said = await asyncio.gather(call(), call(), return_exceptions=True)
        assert [isinstance(one, ControlError) for one in said] == [False, True]
    profiling = control_of(make_stage(fake()), tmp_path)
    said = await asyncio.gather(profiling.start_profile(1), profiling.start_profile(1), return_exceptions=True)
    assert [isinstance(one, ControlError) for one in said] == [False, True]


@pytest.mark.parametrize("level", [0, 3])
async def test_a_level_that_does_not_exist_is_refused(make_stage: MakeStage, level: int) -> None:
    assert (await refusal_of(control_of(make_stage(SleepyEngine())).sleep(level, 1))).refusal is Refusal.INVALID


async def test_it_finishes_what_runs_takes_nothing_new_and_then_sleeps(make_stage: MakeStage) -> None:
    engine = SleepyEngine()
    stage = make_stage(engine)
    async with running_request(stage) as frontend:
        sleeping = asyncio.create_task(control_of(stage).sleep(1, PATIENCE_S))
        await settled(lambda: stage.state is State.SETTLING)
        frontend.send(start("r-2"))
        refused = (await frontend.terminal("r-2")).failed
        assert (refused.code, refused.message) == (
            "stage_unavailable",
            'this replica of stage "denoiser" is settling',
        )
        assert engine.level == 0
        engine.gate.set()
        assert (await frontend.terminal("r-1")).HasField("finished")
        assert await sleeping == 7
        frontend.send(start("r-3"))
        assert (await frontend.terminal("r-3")).failed.message.endswith("is asleep")


async def test_one_that_stays_busy_goes_on_as_before(make_stage: MakeStage) -> None:
    engine = SleepyEngine()
    stage = make_stage(engine)
    async with running_request(stage) as frontend:
        refused = await refusal_of(control_of(stage).sleep(1, 0))
        assert refused.refusal is Refusal.STILL_BUSY
        assert "still has 1 requests after 0 s; it goes on as before" in str(refused)
        assert (stage.state, engine.level) == (State.READY, 0)
        engine.gate.set()
        assert (await frontend.terminal("r-1")).HasField("finished")


async def test_a_drain_calls_off_the_sleep_that_waits(make_stage: MakeStage) -> None:
    engine = SleepyEngine()
    stage = make_stage(engine)
    control = control_of(stage)
    async with running_request(stage):
        sleeping = asyncio.create_task(control.sleep(1, PATIENCE_S))
        await settled(lambda: stage.state is State.SETTLING)
        assert await control.drain(0) == 1
        engine.gate.set()
        assert "is draining by now" in str(await refusal_of(sleeping))
    assert (stage.state, engine.level) == (State.DRAINING, 0)


@pytest.mark.parametrize("change", ["sleep", "wake"])
async def test_a_drain_in_the_midst_of_a_change_is_final(make_stage: MakeStage, change: str) -> None:
    engine = SleepyEngine()
    stage = make_stage(engine)
    control = control_of(stage)
    if change == "wake":
        await control.sleep(1, PATIENCE_S)
    engine.bed.clear()
    changing = asyncio.create_task(control.wake() if change == "wake" else control.sleep(1, PATIENCE_S))
    await settled(lambda: engine.is_changing)
    assert await control.drain(PATIENCE_S) == 0
    engine.bed.set()
    await changing
    assert stage.state is State.DRAINING


async def test_a_wake_that_fails_leaves_it_asleep_and_can_be_tried_again(make_stage: MakeStage) -> None:
    engine = SleepyEngine()
    stage = make_stage(engine)
    control = control_of(stage)
    await control.sleep(1, PATIENCE_S)
    engine.failure = OmniError(ErrorCode.OUT_OF_MEMORY, "too little memory for the weights")
    refused = await refusal_of(control.wake())
    assert (refused.refusal, str(refused)) == (Refusal.FAILED, 'stage "denoiser": too little memory for the weights')
    assert (stage.state, control.stats().sleep_level) == (State.ASLEEP, 1)
    await control.wake()
    assert stage.state is State.READY


async def test_a_sleep_that_fails_leaves_it_ready(make_stage: MakeStage) -> None:
    engine = SleepyEngine()
    stage = make_stage(engine)
    engine.failure = OmniError(ErrorCode.OUT_OF_MEMORY, "too little host memory")
    assert (await refusal_of(control_of(stage).sleep(1, PATIENCE_S))).refusal is Refusal.FAILED
    assert stage.state is State.READY


async def test_an_engine_that_dies_of_it_ends_the_process(make_stage: MakeStage) -> None:
    engine = SleepyEngine()
    stage = make_stage(engine)
    engine.failure = EngineDiedError("the device is lost")
    assert "died: the device is lost" in str(await refusal_of(control_of(stage).sleep(1, PATIENCE_S)))
    assert stage.died.done()


async def test_a_caller_who_leaves_does_not_stop_the_change_half_way(make_stage: MakeStage) -> None:
    engine = SleepyEngine()
    stage = make_stage(engine)
    engine.bed.clear()
    calling = asyncio.create_task(control_of(stage).sleep(1, PATIENCE_S))
    await settled(lambda: engine.is_changing)
    calling.cancel()
    await asyncio.wait([calling])
    engine.bed.set()
    await settled(lambda: stage.state is State.ASLEEP)


async def test_a_worker_drained_while_it_loads_never_gets_ready(make_stage: MakeStage) -> None:
    stage = make_stage(fake(), state=State.LOADING)
    assert await control_of(stage).drain(0) == 0
    assert stage.state is State.DRAINING


async def test_a_profile_ends_by_itself_after_its_steps_and_is_handed_out_once(
    make_stage: MakeStage, tmp_path: Path
) -> None:
    engine = fake(steps=5)
    control = control_of(make_stage(engine), tmp_path / "traces")
    trace = await control.start_profile(3)
    assert trace == tmp_path / "traces" / "denoiser-0-20260102T030405000006.json.gz"
    assert control.stats().is_profiling
    await answered(engine)
    assert not control.stats().is_profiling
    profile = await control.stop_profile()
    assert (profile.trace, profile.steps) == (trace, 3)
    assert [event["name"] for event in events_of(trace)] == [f"r-1 step {step}" for step in (1, 2, 3)]
    assert "records no profile" in str(await refusal_of(control.stop_profile()))


async def test_a_profile_that_is_stopped_early_holds_what_was_recorded(make_stage: MakeStage, tmp_path: Path) -> None:
    engine = fake(steps=2)
    control = control_of(make_stage(engine), tmp_path)
    trace = await control.start_profile(100)
    await answered(engine)
    assert not trace.exists()
    assert "records a profile already" in str(await refusal_of(control.start_profile(1)))
    assert "records a profile; stop that before it sleeps" in str(await refusal_of(control.sleep(1, 0)))
    assert (await control.stop_profile()).steps == len(events_of(trace)) == 2


@pytest.mark.parametrize("steps", [0, MAX_PROFILE_STEPS + 1])
async def test_a_profile_without_an_end_is_refused(make_stage: MakeStage, tmp_path: Path, steps: int) -> None:
    refused = await refusal_of(control_of(make_stage(fake()), tmp_path).start_profile(steps))
    assert (refused.refusal, str(refused)) == (Refusal.INVALID, f"steps is {steps}; it must be from 1 to 1000")


async def test_a_profile_needs_a_folder_that_can_be_written(make_stage: MakeStage, tmp_path: Path) -> None:
    assert "--profile-dir" in str(await refusal_of(control_of(make_stage(fake())).start_profile(1)))
    file = tmp_path / "file"
    file.touch()
    refused = await refusal_of(control_of(make_stage(fake()), file).start_profile(1))
    assert (refused.refusal, str(refused)) == (Refusal.FAILED, f"no trace can be written to {file}: File exists")


async def test_a_cache_reset_says_how_much_was_dropped_and_sleep_changes_nothing_about_it(
    make_stage: MakeStage,
) -> None:
    engine = fake()
    control = control_of(make_stage(engine))
    await answered(engine)
    await control.sleep(1, PATIENCE_S)
    assert await control.reset_cache() == 1
    assert await control.reset_cache() == 0


async def answered(engine: FakeEngine) -> None:
    """One request, from its start to its end."""
    async for _ in engine.run(StageRequest("r-1", {"": {"prompt": "a fox"}}, {}, ("",))):
        pass


def events_of(trace: Path) -> list[dict[str, object]]:
    events: list[dict[str, object]] = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    return events

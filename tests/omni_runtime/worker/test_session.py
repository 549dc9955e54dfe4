"""One frontend's stream: each attempt ends exactly once, and nothing of it outlives it."""

import asyncio

import pytest

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.codec import decode
from omni_contract.wire.stage_file import StageFile
from omni_runtime.worker.session import PORTION_MESSAGES, FrontendSession
from omni_runtime.worker.states import State
from tests.omni_runtime.worker.engines import GatedEngine
from tests.omni_runtime.worker.frontend import cancel, discard, serving, settled, start
from tests.omni_runtime.worker.stage_files import edge, stage_file
from tests.omni_runtime.worker.stages import LARGE, MakeStage, fake, is_idle


async def test_a_request_is_accepted_then_answered_then_finished(make_stage: MakeStage):
    stage = make_stage(fake())
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1", payload={"prompt": "a fox"}))
        await frontend.terminal("r-1")
        accepted, output, finished = frontend.of("r-1")
        assert accepted.accepted
        assert decode(output.outputs[0].inline) == {"prompt": "a fox", "trail": ["denoiser"]}
        assert finished.finished.usage.steps == 1


async def test_progress_comes_after_each_step(make_stage: MakeStage):
    stage = make_stage(fake(steps=3, delay_seconds=0.001))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"))
        await frontend.terminal("r-1")
        steps = [(m.progress.step, m.progress.total) for m in frontend.of("r-1") if m.HasField("progress")]
        assert steps == [(1, 3), (2, 3), (3, 3)]


async def test_of_steps_that_leave_together_only_the_newest_is_told(make_stage: MakeStage):
    stage = make_stage(fake(steps=3))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"))
        await frontend.terminal("r-1")
        assert [m.progress.step for m in frontend.of("r-1") if m.HasField("progress")] == [3]
        assert frontend.kinds("r-1") == ["accepted", "progress", "outputs", "finished"]


async def test_answers_travel_in_batches_and_the_first_leave_before_the_last_request_is_run(make_stage: MakeStage):
    engine, requests = GatedEngine(), 8 * PORTION_MESSAGES
    engine.gate.set()
    stage = make_stage(engine, stage_file(max_in_flight=requests))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(*(start(f"r-{i}") for i in range(requests)))
        await frontend.until(lambda: any(m.HasField("finished") for m in frontend.messages))
        begun_at_first_answer = len(engine.begun)
        await frontend.until(lambda: sum(m.HasField("finished") for m in frontend.messages) == requests)
        assert begun_at_first_answer < requests
        assert len(frontend.batches_received) < requests / 4


async def test_a_small_output_is_inline_and_a_large_one_is_held_until_the_discard(make_stage: MakeStage):
    engine = GatedEngine(lambda request: LARGE if "large" in request.request_id else {"small": 1})
    engine.gate.set()
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-small"), start("r-large"))
        await frontend.terminal("r-small")
        await frontend.terminal("r-large")
        assert frontend.of("r-small")[1].outputs[0].WhichOneof("source") == "inline"
        handle = frontend.of("r-large")[1].outputs[0].handle
        assert (handle.connector, handle.owner, handle.boot_id) == ("grpc", "unix:nowhere", "boot-1")
        assert stage.connectors.census().payloads == 1
        frontend.send(discard("r-small"), discard("r-large"))
        await stage.connectors.wait_empty()
        assert frontend.kinds("r-large") == ["accepted", "outputs", "finished"]


@pytest.mark.case("runtime:C8")
async def test_a_cancelled_request_ends_with_one_failure_and_leaves_the_engine(make_stage: MakeStage):
    engine = GatedEngine()
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"), start("r-2"))
        await frontend.until(lambda: len(frontend.messages) == 2)
        await settled(lambda: len(engine.running) == 2)
        frontend.send(cancel("r-1"), cancel("r-1"), cancel("r-unknown"))
        failure = (await frontend.terminal("r-1")).failed
        assert (failure.code, failure.retryable) == ("cancelled", False)
        assert engine.running == ["r-2"]
        engine.gate.set()
        assert (await frontend.terminal("r-2")).HasField("finished")
        frontend.send(cancel("r-2"))
        frontend.leave()
        await stage.capacity.wait_idle()
        assert [len(frontend.terminals(name)) for name in ("r-1", "r-2", "r-unknown")] == [1, 1, 0]


async def test_a_request_cancelled_in_the_batch_that_starts_it_never_reaches_the_engine(make_stage: MakeStage):
    engine = GatedEngine()
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"), cancel("r-1"))
        assert (await frontend.terminal("r-1")).failed.code == "cancelled"
        assert engine.begun == [] and is_idle(stage)


async def test_a_waiting_request_can_be_cancelled(make_stage: MakeStage):
    engine = GatedEngine()
    stage = make_stage(engine, stage_file(max_in_flight=1))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"), start("r-2"))
        await frontend.until(lambda: len(frontend.messages) == 2)
        frontend.send(cancel("r-2"))
        assert (await frontend.terminal("r-2")).failed.code == "cancelled"
        assert engine.begun == ["r-1"] and stage.capacity.waiting == 0


async def test_a_discard_of_a_running_request_aborts_it_and_frees_everything(make_stage: MakeStage):
    engine = GatedEngine()
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"))
        await frontend.until(lambda: frontend.kinds("r-1") == ["accepted"])
        frontend.send(discard("r-1"))
        assert (await frontend.terminal("r-1")).failed.code == "cancelled"
        assert engine.running == [] and is_idle(stage)


async def test_a_duplicate_start_is_not_run_twice(make_stage: MakeStage):
    engine = GatedEngine()
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"), start("r-1"))
        await frontend.until(lambda: bool(frontend.messages))
        frontend.send(start("r-1"), start("r-2"))
        engine.gate.set()
        await frontend.terminal("r-1")
        await frontend.terminal("r-2")
        assert engine.begun == ["r-1", "r-2"]
        assert frontend.kinds("r-1") == ["accepted", "outputs", "finished"]


async def test_a_newer_attempt_replaces_the_older_one_and_each_ends_once(make_stage: MakeStage):
    engine = GatedEngine()
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1", attempt=1))
        await frontend.until(lambda: bool(frontend.messages))
        frontend.send(start("r-1", attempt=2))
        assert (await frontend.terminal("r-1", attempt=1)).failed.code == "cancelled"
        engine.gate.set()
        assert (await frontend.terminal("r-1", attempt=2)).HasField("finished")


@pytest.mark.case("runtime:L22")
async def test_beyond_its_capacity_a_worker_answers_overloaded_and_serves_the_rest(make_stage: MakeStage):
    engine = GatedEngine()
    stage = make_stage(engine, stage_file(max_in_flight=2))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(*(start(f"r-{i}") for i in range(20)))
        await frontend.until(lambda: len(frontend.messages) == 20)
        failures = [m.failed for m in frontend.messages if m.HasField("failed")]
        assert [(f.code, f.retryable) for f in failures] == [("overloaded", True)] * 16
        assert stage.capacity.running <= 2
        engine.gate.set()
        for i in range(4):
            assert (await frontend.terminal(f"r-{i}")).HasField("finished")
        frontend.send(start("r-later"))
        assert (await frontend.terminal("r-later")).HasField("finished")


async def test_no_more_requests_run_at_once_than_the_engine_takes(make_stage: MakeStage):
    engine = GatedEngine()
    stage = make_stage(engine, stage_file(max_in_flight=2))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(*(start(f"r-{i}") for i in range(4)))
        await frontend.until(lambda: frontend.load.running == 2)
        assert (len(engine.running), frontend.load.running, frontend.load.waiting) == (2, 2, 2)


@pytest.mark.case("runtime:C2")
async def test_after_many_aborts_every_slot_is_free_again(make_stage: MakeStage):
    engine = GatedEngine()
    stage = make_stage(engine, stage_file(max_in_flight=4))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        for i in range(12):
            frontend.send(start(f"r-{i}"))
            await frontend.until(lambda i=i: bool(frontend.of(f"r-{i}")))
            frontend.send(cancel(f"r-{i}"), discard(f"r-{i}"))
            await frontend.terminal(f"r-{i}")
        assert is_idle(stage)
        engine.gate.set()
        frontend.send(*(start(f"s-{i}") for i in range(4)))
        for i in range(4):
            assert (await frontend.terminal(f"s-{i}")).HasField("finished")


async def test_a_drain_is_announced_at_once_and_lets_running_requests_finish(make_stage: MakeStage):
    engine = GatedEngine()
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"))
        await frontend.until(lambda: bool(frontend.messages))
        stage.become(State.DRAINING)
        await frontend.until(lambda: frontend.load.draining)
        engine.gate.set()
        assert (await frontend.terminal("r-1")).HasField("finished")


@pytest.mark.case("runtime:C5")
async def test_a_broken_stream_frees_all_that_the_frontend_had_and_nothing_of_another(make_stage: MakeStage):
    engine = GatedEngine(lambda _: LARGE)
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (other, _):
        engine.gate.set()
        other.send(start("same-id"))
        await other.terminal("same-id")
        async with serving(FrontendSession(stage).serve) as (frontend, session):
            frontend.send(start("same-id"), start("r-2"))
            await frontend.terminal("same-id")
            await frontend.terminal("r-2")
            engine.gate.clear()
            frontend.send(start("r-3"))
            await frontend.until(lambda: bool(frontend.of("r-3")))
            assert stage.connectors.census().payloads == 3
            session.cancel()
            await asyncio.wait([session])
        assert engine.running == [] and stage.connectors.census().payloads == 1
        assert (stage.capacity.running, stage.capacity.waiting) == (0, 0)


async def test_a_frontend_that_leaves_politely_is_freed_as_well(make_stage: MakeStage):
    engine = GatedEngine()
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (frontend, session):
        frontend.send(start("r-1"))
        await frontend.until(lambda: bool(frontend.messages))
        frontend.leave()
        await asyncio.wait_for(session, 5)
        assert engine.running == [] and is_idle(stage)


async def test_requests_that_have_not_had_their_first_turn_are_freed_too(make_stage: MakeStage):
    stage = make_stage(GatedEngine())
    async with serving(FrontendSession(stage).serve) as (frontend, session):
        frontend.send(*(start(f"r-{i}") for i in range(4)))
        await settled(lambda: stage.capacity.waiting == 4)
        session.cancel()
        await asyncio.wait([session])
    assert is_idle(stage)


async def test_a_session_that_is_closed_still_sends_what_it_has_to_say(make_stage: MakeStage):
    stage = make_stage(fake())
    session = FrontendSession(stage)
    async with serving(session.serve) as (frontend, task):
        frontend.gate.clear()
        frontend.send(start("r-1"))
        await stage.capacity.wait_idle()
        await settled(lambda: stage.metrics.outcomes() == {"finished": 1})
        session.close()
        frontend.gate.set()
        await asyncio.wait_for(task, 5)
        assert frontend.kinds("r-1")[-1] == "finished"


async def test_the_load_of_other_frontends_reaches_an_idle_one(make_stage: MakeStage):
    stage = make_stage(GatedEngine())
    async with (
        serving(FrontendSession(stage).serve) as (busy, _),
        serving(FrontendSession(stage).serve) as (idle, _),
    ):
        busy.send(start("r-1"))
        await idle.until(lambda: idle.load.running == 1)
        assert idle.messages == []


async def test_a_message_of_an_unknown_kind_is_ignored(make_stage: MakeStage):
    stage = make_stage(fake())
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(wire.FrontendMessage(request_id="r-0", attempt=1), start("r-1"))
        assert (await frontend.terminal("r-1")).HasField("finished")
        assert frontend.of("r-0") == []


@pytest.mark.case("runtime:B1")
async def test_each_request_is_answered_with_its_own_inputs(make_stage: MakeStage):
    stage = make_stage(fake(delay_seconds=0.001), stage_file(max_in_flight=64))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(*(start(f"r-{i}", payload={"tag": f"tag-{i}"}) for i in range(64)))
        for i in range(64):
            await frontend.terminal(f"r-{i}")
            assert decode(frontend.of(f"r-{i}")[1].outputs[0].inline)["tag"] == f"tag-{i}"


async def test_an_edges_connector_is_the_stage_files(make_stage: MakeStage):
    file: StageFile = stage_file(outputs=(edge("denoiser", "vae", at="denoiser", connector="grpc"),))
    stage = make_stage(fake(), file)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1", outputs=("denoiser->vae",)))
        await frontend.terminal("r-1")
        assert frontend.of("r-1")[1].outputs[0].handle.connector == "grpc"

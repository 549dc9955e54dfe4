"""Requests that fail: each says why, ends once, keeps nothing, and disturbs no other."""

import pytest

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.engines.protocol import EngineDiedError, StageRequest
from omni_runtime.worker.session import FrontendSession
from omni_runtime.worker.states import State
from tests.omni_runtime.worker.engines import GatedEngine, RaisingEngine
from tests.omni_runtime.worker.frontend import serving, start
from tests.omni_runtime.worker.stages import LARGE, MakeStage, fake, is_idle


@pytest.mark.parametrize("remaining_s", [0.0, 0.05])
async def test_a_request_past_its_deadline_ends_with_deadline_exceeded(make_stage: MakeStage, remaining_s: float):
    engine = GatedEngine()
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1", remaining_s=remaining_s))
        failure = (await frontend.terminal("r-1")).failed
        assert (failure.code, failure.retryable) == ("deadline_exceeded", False)
        assert engine.running == [] and is_idle(stage)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OmniError(ErrorCode.INVALID_REQUEST, "steps must be positive", "steps"), "invalid_request", "steps must be"),
        (MemoryError(), "out_of_memory", 'stage "denoiser" ran out of memory'),
        (ValueError("bad shape"), "stage_failed", 'stage "denoiser" failed: ValueError: bad shape'),
        (TimeoutError("inside the engine"), "stage_failed", 'stage "denoiser" failed: TimeoutError'),
    ],
)
async def test_a_failing_request_says_why_and_disturbs_no_other(
    make_stage: MakeStage, error: Exception, code: str, message: str
):
    def of(request: StageRequest) -> Exception | None:
        return error if request.request_id == "r-bad" else None

    stage = make_stage(RaisingEngine(of))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-bad"), start("r-good"))
        failure = (await frontend.terminal("r-bad")).failed
        assert failure.code == code and failure.message.startswith(message)
        assert failure.param == ("steps" if code == "invalid_request" else "")
        assert (await frontend.terminal("r-good")).HasField("finished")
        assert not stage.died.done()


async def test_a_dead_engine_is_reported_to_the_process(make_stage: MakeStage):
    stage = make_stage(RaisingEngine(lambda _: EngineDiedError("device lost")))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"))
        failure = (await frontend.terminal("r-1")).failed
        assert (failure.code, failure.retryable) == ("stage_failed", True)
        assert str(stage.died.result()) == "device lost"


async def test_an_engine_that_forgets_an_output_is_found_out(make_stage: MakeStage):
    class Forgetful(GatedEngine):
        async def run(self, request):
            for event in ():
                yield event

    stage = make_stage(Forgetful())
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1", outputs=("denoiser->vae",)))
        failure = (await frontend.terminal("r-1")).failed
        assert failure.code == "stage_failed" and "denoiser->vae" in failure.message


async def test_a_failed_request_keeps_none_of_the_payloads_it_had_put(make_stage: MakeStage):
    class HalfWay(GatedEngine):
        async def run(self, request):
            async for event in super().run(request):
                yield event
            raise ValueError("after the first output")

    engine = HalfWay(lambda _: LARGE)
    engine.gate.set()
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"))
        assert (await frontend.terminal("r-1")).failed.code == "stage_failed"
        assert is_idle(stage)


async def test_a_full_store_fails_the_request_and_not_the_worker(make_stage: MakeStage):
    engine = GatedEngine(lambda _: {"latents": bytes(9 * 2**20)})
    engine.gate.set()
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"))
        failure = (await frontend.terminal("r-1")).failed
        assert failure.code == "transfer_failed" and "no room for" in failure.message
        assert is_idle(stage)


async def test_unreadable_inputs_and_parameters_fail_the_request(make_stage: MakeStage):
    stage = make_stage(fake())
    broken = start("r-2")
    broken.start.parameters = b"not a payload at all"
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1", inputs=[wire.Input(edge="a->b", inline=b"garbage")]), broken)
        failure = (await frontend.terminal("r-1")).failed
        assert failure.code == "transfer_failed" and 'edge "a->b"' in failure.message and "r-1" in failure.message
        assert (await frontend.terminal("r-2")).failed.code == "internal"


@pytest.mark.parametrize("state", [State.LOADING, State.DRAINING])
async def test_a_worker_that_is_not_ready_refuses_new_work_as_retryable(make_stage: MakeStage, state: State):
    stage = make_stage(fake(), state=state)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"))
        failure = (await frontend.terminal("r-1")).failed
        assert (failure.code, failure.retryable) == ("stage_unavailable", True)
        assert str(state) in failure.message

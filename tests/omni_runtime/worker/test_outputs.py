"""Items on their way out: in chunks or all at once, as the edge says, and never too far ahead of their reader."""

import pytest

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.chunk import chunk_of
from omni_contract.wire.codec import decode
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_file import StageFile
from omni_runtime.worker.outputs import PARTS_AHEAD
from omni_runtime.worker.session import FrontendSession
from tests.omni_runtime.worker.frontend import Frontend, cancel, discard, serving, settled, start
from tests.omni_runtime.worker.stage_files import edge, stage_file
from tests.omni_runtime.worker.stages import MakeStage, fake, is_idle
from tests.support.item_engines import FailsOnce, ItemsEngine

EDGE = "denoiser->vae"


def streaming_file() -> StageFile:
    return stage_file(outputs=(edge("denoiser", "vae", at="denoiser", streaming={"chunkFrames": 2}),))


def taken(parts: int) -> wire.FrontendMessage:
    return wire.FrontendMessage(request_id="r-1", attempt=1, taken=wire.Taken(parts=parts))


def outputs(frontend: Frontend) -> list[wire.Output]:
    return [output for message in frontend.of("r-1") for output in message.outputs]


async def test_a_stream_is_announced_with_its_first_chunk(make_stage: MakeStage):
    engine = ItemsEngine(5)
    stage = make_stage(engine, streaming_file())
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1", outputs=(EDGE,)))
        engine.allow(1)
        await engine.until_made(2)
        assert outputs(frontend) == []
        engine.allow(10)
        await frontend.terminal("r-1")
        [announced] = outputs(frontend)
        assert (announced.edge, announced.handle.kind) == (EDGE, wire.HANDLE_KIND_STREAM)
        assert stage.connectors.census().payloads == 1
        frontend.send(discard("r-1"))
        await stage.connectors.wait_empty()


async def test_items_for_an_edge_that_does_not_stream_leave_as_one_payload(make_stage: MakeStage):
    stage = make_stage(fake(behavior="burst", steps=3), stage_file(outputs=(edge("denoiser", "vae", at="denoiser"),)))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1", outputs=(EDGE,)))
        await frontend.terminal("r-1")
        [whole] = outputs(frontend)
        chunk = chunk_of(decode(whole.inline))
        assert chunk.is_last and [item["item"] for item in chunk.items] == [0, 1, 2]


@pytest.mark.case("runtime:C3")
async def test_a_stream_that_breaks_off_stays_until_its_reader_was_told_why(make_stage: MakeStage):
    stage = make_stage(FailsOnce(after=5), streaming_file())
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1", outputs=(EDGE,)))
        assert (await frontend.terminal("r-1")).failed.code == "stage_failed"
        assert stage.connectors.census().payloads == 1
        frontend.send(cancel("r-1"))
        await stage.connectors.wait_empty()
        assert len(frontend.terminals("r-1")) == 1


async def test_a_stream_whose_attempt_is_cancelled_is_freed_at_once(make_stage: MakeStage):
    engine = ItemsEngine(5)
    engine.allow(3)
    stage = make_stage(engine, streaming_file())
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1", outputs=(EDGE,)))
        await engine.until_made(4)
        frontend.send(cancel("r-1"))
        assert (await frontend.terminal("r-1")).failed.code == "cancelled"
        assert is_idle(stage)


async def test_a_broken_session_frees_the_streams_of_failed_attempts_as_well(make_stage: MakeStage):
    stage = make_stage(FailsOnce(after=5), streaming_file())
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1", outputs=(EDGE,)))
        await frontend.terminal("r-1")
    assert is_idle(stage)


async def test_parts_of_the_answer_go_only_so_far_ahead_of_their_reader(make_stage: MakeStage):
    engine = ItemsEngine(1000)
    engine.allow(1000)
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"))
        await settled(lambda: len(outputs(frontend)) == PARTS_AHEAD)
        frontend.send(taken(8))
        await settled(lambda: len(outputs(frontend)) == PARTS_AHEAD + 8)
        assert engine.made == PARTS_AHEAD + 8 + 1
        assert all(output.more for output in outputs(frontend))


async def test_no_more_parts_go_ahead_than_allowed_whatever_a_frontend_says_it_has_read(make_stage: MakeStage):
    engine = ItemsEngine(1000)
    engine.allow(1000)
    stage = make_stage(engine)
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"))
        await settled(lambda: len(outputs(frontend)) == PARTS_AHEAD)
        frontend.send(taken(2**31))
        await settled(lambda: len(outputs(frontend)) == 2 * PARTS_AHEAD)
        frontend.send(cancel("r-1"))
        await frontend.terminal("r-1")
        assert len(outputs(frontend)) == 2 * PARTS_AHEAD


async def test_the_last_part_says_so_and_has_no_items(make_stage: MakeStage):
    stage = make_stage(fake(behavior="burst", steps=3))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"))
        await frontend.terminal("r-1")
        *parts, last = outputs(frontend)
        assert [part.more for part in parts] == [True] * 3 and not last.more
        assert chunk_of(decode(last.inline)).items == ()


async def test_an_edge_for_which_nothing_was_made_is_a_failure_that_names_it(make_stage: MakeStage):
    stage = make_stage(ItemsEngine(0))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1", outputs=(EDGE,)))
        failure = (await frontend.terminal("r-1")).failed
        assert (failure.code, EDGE in failure.message) == ("stage_failed", True)


async def test_a_stream_that_finds_no_room_fails_and_is_not_taken_for_one_that_nobody_reads(make_stage: MakeStage):
    engine = ItemsEngine(3, {"latents": bytes(9 * 2**20)})
    engine.allow(3)
    stage = make_stage(engine, streaming_file())
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1", outputs=(EDGE,)))
        failure = (await frontend.terminal("r-1")).failed
        assert (failure.code, failure.retryable) == (ErrorCode.TRANSFER_FAILED, True)
        assert "no room" in failure.message


async def test_an_error_of_an_engine_ends_its_parts(make_stage: MakeStage):
    error = OmniError(ErrorCode.INVALID_REQUEST, "not a fox", "prompt")
    stage = make_stage(FailsOnce(after=2, error=error))
    async with serving(FrontendSession(stage).serve) as (frontend, _):
        frontend.send(start("r-1"))
        failure = (await frontend.terminal("r-1")).failed
        assert (failure.code, failure.param) == ("invalid_request", "prompt")
        assert is_idle(stage)

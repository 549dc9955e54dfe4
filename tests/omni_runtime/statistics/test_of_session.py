"""A request's statistics, from real workers in this process."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array
from omni_runtime.engines.protocol import StageEvent, StageOutput, StageRequest, StageUsage
from omni_runtime.frontend.session_metrics import SessionMetrics
from omni_runtime.orchestrator import OrchestratorSettings, SessionRequest
from omni_runtime.orchestrator.session import Session
from omni_runtime.statistics.of_session import stats_of
from omni_runtime.statistics.request import RequestStats, StageRequestStats, TransferEdgeStats
from tests.support.stage_servers import RunningModel, fake_model_of, running_model

MEASURED = OrchestratorSettings(frontend_id="frontend-1", is_measured=True)
UNMEASURED = OrchestratorSettings(frontend_id="frontend-1")
LATENT_BYTES = 100_000
POSTPROCESS_S = 0.003
GENERATION_S = 0.01


class Painter:
    """Takes its time, part of it for post-processing, and says what an engine can say."""

    def __init__(self, payload: Mapping[str, Any], usage: StageUsage) -> None:
        self._payload = payload
        self._usage = usage

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        await asyncio.sleep(GENERATION_S)
        for edge in request.outputs:
            yield StageOutput(edge, self._payload)
        yield self._usage

    def heartbeat_age_s(self) -> float:
        return 0.0


def image(width: int, height: int) -> Array:
    return Array("uint8", (height, width, 3), memoryview(bytes(width * height * 3)))


THINKER = Painter({"latents": bytes(LATENT_BYTES)}, StageUsage(7, 3, 2, 0.5, POSTPROCESS_S, batch_id=12, batch_size=4))
PAINTER = Painter({"image": image(8, 4)}, StageUsage(input_tokens=3))


def chain(streaming: Mapping[str, Any] | None = None) -> Any:
    fake = {"fake": {"behavior": "burst" if streaming else "echo", "steps": 5}}
    edge = {"from": "thinker", "to": "painter"} | ({"streaming": streaming} if streaming else {})
    stages = {"thinker": fake, "painter": {"fake": {"behavior": "echo"}, "output": {"modality": "image"}}}
    return fake_model_of(stages, [edge])


async def ended(model: RunningModel, **fields: Any) -> RequestStats:
    """Of one request, when it is over however it ends."""
    over: list[Session] = []
    model.orchestrator.observe(over.append)
    with suppress(OmniError):
        await model.orchestrator.run(SessionRequest("r-1", {"prompt": "a fox"}, **fields))
    [session] = over
    return stats_of(session)


@pytest.fixture
async def painted(tmp_path: Path) -> RequestStats:
    engines: Any = {"thinker": THINKER, "painter": PAINTER}
    async with running_model(chain(), tmp_path, engines, settings=MEASURED) as model:
        return await ended(model)


def parts(stats: RequestStats) -> tuple[StageRequestStats, StageRequestStats, TransferEdgeStats]:
    [thinker, painter], [edge] = stats.stages, stats.edges
    return thinker, painter, edge


async def test_what_the_engine_says_of_tokens_and_batch_comes_through(painted: RequestStats) -> None:
    thinker, painter, _ = parts(painted)
    assert (thinker.stage, thinker.replica) == ("thinker", "thinker-0")
    assert (thinker.num_tokens_in, thinker.num_tokens_out, thinker.batch_id, thinker.batch_size) == (7, 3, 12, 4)
    assert (painter.num_tokens_in, painter.batch_id, painter.batch_size) == (3, 1, 1)
    assert painted.e2e.e2e_total_tokens == 7 + 3


async def test_post_processing_is_no_part_of_the_generation(painted: RequestStats) -> None:
    thinker, painter, _ = parts(painted)
    assert thinker.postprocess_time_ms == 1000 * POSTPROCESS_S
    assert thinker.stage_gen_time_ms >= 1000 * (GENERATION_S - POSTPROCESS_S) - 1
    assert thinker.stage_gen_time_ms + thinker.postprocess_time_ms <= thinker.wall_time_ms
    assert painter.stage_gen_time_ms >= 1000 * GENERATION_S - 1


async def test_an_edge_is_told_by_both_of_its_ends(painted: RequestStats) -> None:
    _, painter, edge = parts(painted)
    assert edge.edge == "thinker->painter"
    assert LATENT_BYTES <= edge.size_kbytes * 1024 <= LATENT_BYTES + 1000
    assert edge.tx_time_ms > 0 and edge.rx_decode_time_ms > 0 and edge.in_flight_time_ms > 0
    assert edge.rx_decode_time_ms + edge.in_flight_time_ms + painter.stage_gen_time_ms <= painter.wall_time_ms
    assert painted.e2e.transfers_total_time_ms == edge.total_time_ms


async def test_pictures_are_counted_where_they_are_answered(painted: RequestStats) -> None:
    thinker, painter, _ = parts(painted)
    assert (thinker.image_num, painter.image_num, painter.resolution) == (0, 1, "8x4")


async def test_stages_lie_within_the_request_one_after_the_other(painted: RequestStats) -> None:
    thinker, painter, _ = parts(painted)
    assert painted.began_s <= thinker.began_s <= thinker.ended_s <= painted.ended_s
    assert thinker.began_s < painter.began_s and painter.ended_s <= painted.ended_s
    assert painted.outcome == "finished"


async def test_a_stream_is_told_as_its_chunks_and_their_bytes(tmp_path: Path) -> None:
    async with running_model(chain({"chunkFrames": 2}), tmp_path, settings=MEASURED) as model:
        [edge] = (await ended(model)).edges
    assert edge.chunks == 3
    assert edge.size_kbytes > 0 and edge.tx_time_ms > 0
    assert edge.rx_decode_time_ms == 0


async def test_without_the_switch_workers_are_not_asked(tmp_path: Path) -> None:
    engines: Any = {"thinker": THINKER, "painter": PAINTER}
    async with running_model(chain(), tmp_path, engines, settings=UNMEASURED) as model:
        stats = await ended(model)
    assert [stage.stage_gen_time_ms for stage in stats.stages] == [0, 0]
    assert stats.e2e.transfers_total_time_ms == stats.e2e.transfers_total_kbytes == 0


async def test_a_request_that_fails_tells_how_far_it_came(tmp_path: Path) -> None:
    engines: Any = {"thinker": THINKER}
    failing = fake_model_of(
        {
            "thinker": {"fake": {}},
            "painter": {"fake": {"behavior": "stall"}, "output": {"modality": "image"}},
        },
        [{"from": "thinker", "to": "painter"}],
    )
    async with running_model(failing, tmp_path, engines, settings=MEASURED) as model:
        stats = await ended(model, timeout_s=0.3)
    assert stats.outcome == "deadline_exceeded"
    assert [stage.stage for stage in stats.stages] == ["thinker"]
    assert stats.edges == ()


class Mute(Painter):
    """Fails at what nobody has to have."""

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        raise OmniError(ErrorCode.INVALID_REQUEST, "no such voice")
        yield


async def test_a_stage_that_the_caller_does_without_is_in_no_figure(tmp_path: Path) -> None:
    """Its session is finished, it is not."""
    stages = {
        "thinker": {"fake": {}, "output": {"modality": "text"}},
        "vocoder": {"fake": {}, "output": {"modality": "audio"}},
    }
    model_of = fake_model_of(stages, [{"from": "thinker", "to": "vocoder"}])
    engines: Any = {"vocoder": Mute({}, StageUsage())}
    async with running_model(model_of, tmp_path, engines, settings=MEASURED) as model:
        metrics = CollectorRegistry()
        model.orchestrator.observe(SessionMetrics(metrics).session_ended)
        stats = await ended(model, takes_what_is_left=True)
    assert stats.outcome == "finished"
    assert [stage.stage for stage in stats.stages] == ["thinker"]
    assert metrics.get_sample_value("omni_frontend_stage_wall_seconds_count", {"stage": "thinker"}) == 1
    assert metrics.get_sample_value("omni_frontend_stage_wall_seconds_count", {"stage": "vocoder"}) is None


async def test_sound_is_counted_in_samples_and_in_seconds(tmp_path: Path) -> None:
    samples = Array("float32", (2, 480), memoryview(bytes(2 * 480 * 4)))
    model_of = fake_model_of({"vocoder": {"fake": {}, "output": {"modality": "audio"}}}, [])
    engines: Any = {"vocoder": Painter({"audio": samples, "sample_rate": 24_000}, StageUsage())}
    async with running_model(model_of, tmp_path, engines, settings=MEASURED) as model:
        stats = await ended(model)
    [stage] = stats.stages
    assert (stage.audio_generated_frames, stage.audio_duration_s) == (480, 0.02)
    assert stage.audio_rtf == pytest.approx(stats.e2e.e2e_total_ms / 1000 / 0.02)


async def test_the_first_of_an_answer_that_comes_in_parts_is_told_apart_from_the_last(tmp_path: Path) -> None:
    stages = {
        "thinker": {"fake": {"behavior": "burst", "steps": 5, "delaySeconds": 0.02}, "output": {"modality": "text"}}
    }
    async with running_model(fake_model_of(stages, []), tmp_path, settings=MEASURED) as model:
        stats = await ended(model)
    [stage] = stats.stages
    assert 20 <= stage.first_output_ms <= stats.e2e.e2e_total_ms - 20

"""The orchestrator against workers that speak the real protocol."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_table import StageTable
from omni_runtime.orchestrator import (
    Completed,
    FinalOutput,
    Orchestrator,
    OrchestratorSettings,
    OverloadedError,
    Progress,
    Session,
    SessionRequest,
    collect,
)
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from tests.support.fake_model import fake_model, fake_worker, located
from tests.support.fake_worker import FakeWorker, Job, answer_all
from tests.support.stage_tables import IMAGE_STAGES, chain, edge, image_table, stage
from tests.support.stage_tables import table as stage_table


@asynccontextmanager
async def orchestrator_of(table: StageTable) -> AsyncIterator[Orchestrator]:
    settings = OrchestratorSettings(frontend_id="test", reconnect_first_s=0.01)
    async with Orchestrator(table, LocalDiscovery(table), settings).running() as orchestrator:
        yield orchestrator


def request(request_id: str = "r1", **fields: Any) -> SessionRequest:
    return SessionRequest(request_id, {"prompt": "a cat"}, **fields)


async def test_a_request_runs_through_all_stages_and_tells_who_served_it(tmp_path: Path) -> None:
    table = located(image_table(), tmp_path)
    async with fake_model(table, tmp_path) as workers, orchestrator_of(table) as orchestrator:
        result = await orchestrator.run(request(parameters={"width": 4, "height": 2, "seed": 9}))
    assert dict(result.replicas) == {name: f"{name}-0" for name in IMAGE_STAGES}
    assert result.outputs[0].modality == "image"
    assert result.outputs[0].payload["image"].shape == (2, 4, 3)  # type: ignore[union-attr]
    assert [workers[name].jobs[0].attempt for name in IMAGE_STAGES] == [1, 1, 1]


async def test_a_final_output_by_handle_is_fetched_from_its_worker(tmp_path: Path) -> None:
    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path, final_by_handle=True), orchestrator_of(table) as orchestrator:
        result = await orchestrator.run(request(parameters={"width": 300, "height": 200}))
    assert result.outputs[0].payload["image"].shape == (200, 300, 3)  # type: ignore[union-attr]


async def test_every_worker_that_holds_something_is_told_to_drop_it_and_no_other(tmp_path: Path) -> None:
    table = located(image_table(), tmp_path)
    async with fake_model(table, tmp_path) as workers, orchestrator_of(table) as orchestrator:
        for name in ("r1", "r2"):
            await orchestrator.run(request(name))
        *holders, last = (workers[name] for name in IMAGE_STAGES)
        for worker in holders:
            await worker.told(lambda worker=worker: worker.discarded == ["r1", "r2"])
        assert last.discarded == [] and last.held == {}
        assert orchestrator.open_sessions == 0


async def test_leaving_a_session_early_cancels_it_on_the_stage_that_runs(tmp_path: Path) -> None:
    table = located(image_table(), tmp_path)
    async with fake_model(table, tmp_path) as workers, orchestrator_of(table) as orchestrator:
        workers["denoiser"].gate.clear()
        async with orchestrator.submit(request("r1")):
            await workers["denoiser"].started(1)
        await workers["denoiser"].told(lambda: workers["denoiser"].cancelled == ["r1"])
        assert workers["text-encoder"].cancelled == []
        assert orchestrator.open_sessions == 0


async def test_events_end_with_exactly_one_completed(tmp_path: Path) -> None:
    table = located(image_table(), tmp_path)
    async with fake_model(table, tmp_path), orchestrator_of(table) as orchestrator:
        session = orchestrator.submit(request())
        kinds = [type(event) async for event in session if not isinstance(event, Progress)]
    assert kinds == [FinalOutput, Completed]


async def test_each_request_leaves_one_line_that_says_how_it_ended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path) as workers, orchestrator_of(table) as orchestrator:
        with caplog.at_level("INFO"):
            await orchestrator.run(request("r1"))
            workers["painter"].answer = refuse
            with pytest.raises(OmniError):
                await orchestrator.run(request("r2"))
    lines = [line for line in caplog.records if hasattr(line, "request_id")]
    assert [line.request_id for line in lines] == ["r1", "r2"]
    assert "request done after" in lines[0].getMessage()
    assert "request failed after" in lines[1].getMessage() and "invalid_request: told to" in lines[1].getMessage()


async def refuse(worker: FakeWorker, job: Job) -> None:
    job.fail("invalid_request", retryable=False)


async def test_every_stage_gets_its_defaults_the_request_s_values_and_the_trace(tmp_path: Path) -> None:
    first = stage("encoder", sampling={"steps": 4, "scale": 1.0})
    second = stage("painter", "image", sampling={"steps": 8})
    table = located(stage_table([first, second], [edge("encoder", "painter")]), tmp_path)
    async with fake_model(table, tmp_path) as workers, orchestrator_of(table) as orchestrator:
        await orchestrator.run(request(parameters={"scale": 3.0, "seed": 1}, traceparent="00-ab-cd-01"))
    asked = {name: dict(worker.jobs[0].parameters) for name, worker in workers.items()}
    assert asked == {
        "encoder": {"steps": 4, "scale": 3.0, "seed": 1},
        "painter": {"steps": 8, "scale": 3.0, "seed": 1},
    }
    assert {worker.jobs[0].start.traceparent for worker in workers.values()} == {"00-ab-cd-01"}


async def test_stages_work_on_different_requests_at_the_same_time(tmp_path: Path) -> None:
    table = located(chain("encoder", "painter"), tmp_path)
    async with fake_model(table, tmp_path) as workers, orchestrator_of(table) as orchestrator:
        encoder, painter = workers["encoder"], workers["painter"]
        painter.gate.clear()
        first = asyncio.create_task(orchestrator.run(request("r1")))
        await painter.started(1)
        encoder.gate.clear()
        second = asyncio.create_task(orchestrator.run(request("r2")))
        await encoder.started(2)
        at_work = {
            worker.stage: [job.request_id for job in worker.jobs if not job.is_over] for worker in (encoder, painter)
        }
        assert at_work == {"encoder": ["r2"], "painter": ["r1"]}
        encoder.gate.set()
        painter.gate.set()
        assert (await first).outputs and (await second).outputs


async def test_a_deadline_ends_the_request_and_names_the_unfinished_stage(tmp_path: Path) -> None:
    table = located(image_table(), tmp_path)
    async with fake_model(table, tmp_path) as workers, orchestrator_of(table) as orchestrator:
        workers["denoiser"].gate.clear()
        with pytest.raises(OmniError, match="denoiser") as caught:
            await orchestrator.run(request(timeout_s=0.2))
        assert caught.value.code is ErrorCode.DEADLINE_EXCEEDED
        await workers["denoiser"].told(lambda: workers["denoiser"].cancelled == ["r1"])


async def test_a_killed_replica_s_work_is_done_again_by_another(tmp_path: Path) -> None:
    table = located(image_table(), tmp_path, {"denoiser": 2})
    second = fake_worker(table, "denoiser", tmp_path, index=1)
    async with fake_model(table, tmp_path) as workers, second, orchestrator_of(table) as orchestrator:
        workers["denoiser"].gate.clear()
        second.gate.clear()
        session = orchestrator.submit(request(parameters={"seed": 5}))
        await works(session, "denoiser")
        victim, survivor = sorted((workers["denoiser"], second), key=lambda worker: not worker.jobs)
        await victim.die()
        survivor.gate.set()
        result = await collect(session)
    assert result.replicas["denoiser"] == survivor.replica
    assert survivor.jobs[0].parameters["seed"] == 5
    assert len(workers["text-encoder"].jobs) == 2, "the embeddings were consumed, so their producer runs again"


async def test_without_a_replica_a_request_waits_and_then_gets_stage_unavailable(tmp_path: Path) -> None:
    table = located(image_table(queue_timeout_seconds=1), tmp_path)
    encoder = fake_worker(table, "text-encoder", tmp_path)
    async with encoder, orchestrator_of(table) as orchestrator:
        with pytest.raises(OmniError, match="no replica of denoiser, vae-decoder is ready") as caught:
            await orchestrator.run(request())
    assert caught.value.code is ErrorCode.STAGE_UNAVAILABLE
    assert encoder.jobs == [], "no work is started that nobody can finish"


async def test_a_request_that_waits_runs_as_soon_as_a_replica_comes(tmp_path: Path) -> None:
    table = located(image_table(), tmp_path)
    async with orchestrator_of(table) as orchestrator:
        running = asyncio.create_task(orchestrator.run(request()))
        async with fake_model(table, tmp_path):
            assert (await running).outputs


async def test_a_second_loss_fails_the_request(tmp_path: Path) -> None:
    async def fail(worker: FakeWorker, job: Job) -> None:
        job.accept()
        job.fail("stage_failed", "out of luck")

    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path, answer=fail) as workers, orchestrator_of(table) as orchestrator:
        with pytest.raises(OmniError, match="out of luck") as caught:
            await orchestrator.run(request())
        assert caught.value.code is ErrorCode.STAGE_FAILED
        assert [job.attempt for job in workers["painter"].jobs] == [1, 2]


@pytest.mark.case("runtime:K13")
async def test_a_refusal_that_no_replica_can_mend_is_not_retried(tmp_path: Path) -> None:
    async def refuse(worker: FakeWorker, job: Job) -> None:
        job.accept()
        job.fail("invalid_request", "width must be a multiple of 16", retryable=False, param="size")

    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path, answer=refuse) as workers, orchestrator_of(table) as orchestrator:
        with pytest.raises(OmniError, match="multiple of 16") as caught:
            await orchestrator.run(request())
        assert (caught.value.code, caught.value.param) == (ErrorCode.INVALID_REQUEST, "size")
        assert len(workers["painter"].jobs) == 1


async def test_a_full_worker_is_asked_again_without_spending_the_retry(tmp_path: Path) -> None:
    refusals = iter([True, True, False])

    async def often_full(worker: FakeWorker, job: Job) -> None:
        if next(refusals):
            job.fail("overloaded")
        else:
            await answer_all(worker, job)

    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path, answer=often_full) as workers, orchestrator_of(table) as orchestrator:
        assert (await orchestrator.run(request())).outputs
        assert orchestrator.retries_total == 0
        assert len(workers["painter"].jobs) == 3


async def test_a_worker_never_gets_more_than_it_can_take(tmp_path: Path) -> None:
    most = 0

    async def count(worker: FakeWorker, job: Job) -> None:
        nonlocal most
        most = max(most, worker.running)
        await answer_all(worker, job)

    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path, answer=count, max_in_flight=2), orchestrator_of(table) as orchestrator:
        await asyncio.gather(*(orchestrator.run(request(f"r{i}")) for i in range(20)))
    assert most == 2


async def test_what_the_queue_cannot_take_is_refused_with_a_time_to_come_back(tmp_path: Path) -> None:
    table = located(chain("painter", max_queue_length=1), tmp_path)
    async with fake_model(table, tmp_path, max_in_flight=1) as workers, orchestrator_of(table) as orchestrator:
        workers["painter"].gate.clear()
        async with orchestrator.submit(request("r1")):
            await workers["painter"].started(1)
            async with orchestrator.submit(request("r2")):
                with pytest.raises(OverloadedError) as caught:
                    orchestrator.submit(request("r3"))
    assert caught.value.retry_after_s >= 1


async def test_a_batch_is_admitted_whole_or_not_at_all(tmp_path: Path) -> None:
    table = located(chain("painter", max_queue_length=2), tmp_path)
    async with fake_model(table, tmp_path, max_in_flight=1), orchestrator_of(table) as orchestrator:
        with pytest.raises(OverloadedError):
            orchestrator.submit_all([request(f"r{i}") for i in range(4)])
        assert orchestrator.open_sessions == 0


async def test_messages_of_an_older_attempt_are_dropped(tmp_path: Path) -> None:
    async def late(worker: FakeWorker, job: Job) -> None:
        if job.attempt == 1:
            job.accept()
            job.fail("stage_failed")
            job.fail("invalid_request", "from the past", retryable=False)
        else:
            await answer_all(worker, job)

    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path, answer=late), orchestrator_of(table) as orchestrator:
        assert (await orchestrator.run(request())).outputs


async def works(session: Session, stage: str) -> None:
    """Waits until the stage has reported a step, so its work is known to be accepted."""
    async for event in session:
        if isinstance(event, Progress) and event.stage == stage:
            return

"""A final output that comes in parts: read in order, acknowledged, and complete or an error."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.chunk import ITEMS, Chunk
from omni_contract.wire.codec import encode
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Payload
from omni_runtime.orchestrator.answers import PARTS_TAKEN_AT_ONCE
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from omni_runtime.orchestrator.orchestrator import Orchestrator, collect
from omni_runtime.orchestrator.request import SessionRequest
from omni_runtime.orchestrator.session import Session
from omni_runtime.orchestrator.settings import OrchestratorSettings
from tests.support.fake_model import fake_worker, located
from tests.support.fake_worker import Answer, FakeWorker, Job
from tests.support.stage_tables import stage, table

TABLE = table([stage("thinker", "text")])


def parts(count: int) -> list[tuple[Payload, bool]]:
    """Each part's payload, and whether more follow."""
    return [*((Chunk(({"item": number},)).payload(), True) for number in range(count)), (last().payload(), False)]


def last() -> Chunk:
    return Chunk((), is_last=True)


def answering(given: Sequence[tuple[Payload, bool]]) -> Answer:
    async def answer(worker: FakeWorker, job: Job) -> None:
        job.accept()
        for payload, more in given:
            job.send(outputs=[wire.Output(edge=FINAL, inline=encode(payload).to_bytes(), more=more)])
        await worker.gate.wait()
        job.send(finished=wire.Finished())

    return answer


@asynccontextmanager
async def asking(folder: Path, given: Sequence[tuple[Payload, bool]]) -> AsyncIterator[tuple[Session, FakeWorker]]:
    where = located(TABLE, folder)
    orchestrator = Orchestrator(where, LocalDiscovery(where), OrchestratorSettings(frontend_id="frontend-1"))
    async with fake_worker(TABLE, "thinker", folder, answer=answering(given)) as worker, orchestrator.running():
        yield orchestrator.submit(SessionRequest("r-1", {"prompt": "a fox"})), worker


async def test_parts_are_read_in_order_and_the_last_ends_the_answer(tmp_path: Path) -> None:
    async with asking(tmp_path, parts(20)) as (session, _):
        result = await collect(session)
    assert [item["item"] for chunk in result.chunks for item in chunk.items] == list(range(20))
    assert [chunk.is_last for chunk in result.chunks] == [*[False] * 20, True]
    assert {(chunk.stage, chunk.modality) for chunk in result.chunks} == {("thinker", "text")}


async def test_the_worker_is_told_what_was_read_a_few_parts_at_a_time(tmp_path: Path) -> None:
    async with asking(tmp_path, parts(2 * PARTS_TAKEN_AT_ONCE + 3)) as (session, worker):
        worker.gate.clear()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(collect(session))
            await worker.told(lambda: len(worker.taken) == 2)
            worker.gate.set()
    assert worker.taken == [PARTS_TAKEN_AT_ONCE] * 2


async def test_a_stage_that_finishes_without_its_last_part_has_failed(tmp_path: Path) -> None:
    async with asking(tmp_path, parts(3)[:-1]) as (session, _):
        with pytest.raises(OmniError, match="finished without an output for ''") as caught:
            await collect(session)
    assert caught.value.code is ErrorCode.STAGE_FAILED


async def test_a_part_that_cannot_be_read_is_a_failed_transfer(tmp_path: Path) -> None:
    async with asking(tmp_path, [({ITEMS: "nonsense"}, False)]) as (session, _):
        with pytest.raises(OmniError, match="items of a chunk must be maps") as caught:
            await collect(session)
    assert caught.value.code is ErrorCode.TRANSFER_FAILED

"""Replicas that come, leave and differ, while requests run."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_table import StageTable
from omni_runtime.orchestrator import Orchestrator, OrchestratorSettings, SessionRequest, collect
from omni_runtime.orchestrator.discovery.protocol import Topology
from tests.support.fake_model import address, fake_worker, located
from tests.support.stage_tables import chain, edge, stage
from tests.support.stage_tables import table as stage_table


class Told:
    """Discovery that a test speaks through."""

    def __init__(self) -> None:
        self._said: asyncio.Queue[Topology] = asyncio.Queue()

    def say(self, table: StageTable, folder: Path, **replicas: tuple[int, ...]) -> None:
        where = {stage: frozenset(address(folder, stage, index) for index in of) for stage, of in replicas.items()}
        self._said.put_nowait(Topology(table, where))

    async def topologies(self) -> AsyncIterator[Topology]:
        while True:
            yield await self._said.get()


@asynccontextmanager
async def told(table: StageTable, **changes: Any) -> AsyncIterator[tuple[Orchestrator, Told]]:
    discovery = Told()
    settings = OrchestratorSettings("test", reconnect_first_s=0.01, **changes)
    async with Orchestrator(table, discovery, settings).running() as orchestrator:
        yield orchestrator, discovery


def request(number: int = 0) -> SessionRequest:
    return SessionRequest(f"r{number}", {"prompt": "a cat"})


def replicas_of(orchestrator: Orchestrator) -> Mapping[str, set[str]]:
    return {
        stage.name: {replica.name for replica in stage.replicas if replica.is_routable}
        for stage in orchestrator.stages()
    }


async def until(condition: Callable[[], bool]) -> None:
    """For what the orchestrator tells nobody: asks again at each turn of the loop."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_a_replica_that_leaves_finishes_what_it_has_and_gets_nothing_new(tmp_path: Path) -> None:
    table = chain("painter")
    old, new = (fake_worker(table, "painter", tmp_path, index) for index in range(2))
    async with old, new, told(table) as (orchestrator, discovery):
        discovery.say(table, tmp_path, painter=(0,))
        old.gate.clear()
        running = asyncio.create_task(orchestrator.run(request(0)))
        await old.started(1)
        discovery.say(table, tmp_path, painter=(1,))
        await until(lambda: replicas_of(orchestrator) == {"painter": {"painter-1"}})
        assert (await orchestrator.run(request(1))).replicas == {"painter": "painter-1"}
        old.gate.set()
        assert (await running).replicas == {"painter": "painter-0"}
        assert len(old.jobs) == 1


async def test_a_replica_that_comes_back_gets_work_again(tmp_path: Path) -> None:
    table = chain("painter")
    async with told(table) as (orchestrator, discovery):
        discovery.say(table, tmp_path, painter=(0,))
        for boot in ("one", "two"):
            async with fake_worker(table, "painter", tmp_path, boot_id=boot):
                assert (await orchestrator.run(request())).outputs


async def test_old_never_talks_to_new_across_a_changed_contract(tmp_path: Path) -> None:
    """Both encoders live, but only the new one has a decoder that understands it."""
    table = chain("encoder", "decoder")
    old = fake_worker(table, "encoder", tmp_path, 0)
    new = replace(fake_worker(table, "encoder", tmp_path, 1), outputs={"encoder->decoder": "changed"})
    decoder = replace(fake_worker(table, "decoder", tmp_path, 0), inputs={"encoder->decoder": "changed"})
    async with old, new, decoder, told(table) as (orchestrator, discovery):
        discovery.say(table, tmp_path, encoder=(0, 1), decoder=(0,))
        results = await asyncio.gather(*(orchestrator.run(request(number)) for number in range(8)))
    assert {result.replicas["encoder"] for result in results} == {"encoder-1"}
    assert old.jobs == []


async def test_if_no_contracts_match_the_reason_says_so(tmp_path: Path) -> None:
    table = chain("encoder", "decoder", queue_timeout_seconds=1)
    encoder = fake_worker(table, "encoder", tmp_path)
    decoder = replace(fake_worker(table, "decoder", tmp_path), inputs={"encoder->decoder": "changed"})
    async with encoder, decoder, told(table) as (orchestrator, discovery):
        discovery.say(table, tmp_path, encoder=(0,), decoder=(0,))
        with pytest.raises(OmniError, match='no replica of "encoder" has the same edge contracts') as caught:
            await orchestrator.run(request())
    assert caught.value.code is ErrorCode.STAGE_UNAVAILABLE


async def test_a_worker_of_another_stage_at_the_address_is_not_used(tmp_path: Path) -> None:
    """A pod's address may be given to another pod before discovery notices."""
    table = located(chain("painter", queue_timeout_seconds=1), tmp_path)
    stranger = replace(fake_worker(table, "painter", tmp_path), stage="vocoder")
    async with stranger, told(table) as (orchestrator, discovery):
        discovery.say(table, tmp_path, painter=(0,))
        with pytest.raises(OmniError, match="no replica of painter is ready"):
            await orchestrator.run(request())
    assert stranger.jobs == []


async def test_new_defaults_in_the_table_count_for_the_next_request(tmp_path: Path) -> None:
    table = chain("painter")
    stages = tuple(stage.model_copy(update={"sampling": {"steps": 9}}) for stage in table.stages)
    changed = table.model_copy(update={"stages": stages, "revision": "r2"})
    worker = fake_worker(table, "painter", tmp_path)
    async with worker, told(table) as (orchestrator, discovery):
        discovery.say(table, tmp_path, painter=(0,))
        worker.gate.clear()
        running = orchestrator.submit(request(0))
        await worker.started(1)
        discovery.say(changed, tmp_path, painter=(0,))
        await until(lambda: orchestrator.table.revision == "r2")
        worker.gate.set()
        await collect(running)
        await orchestrator.run(request(1))
    assert [dict(job.parameters) for job in worker.jobs] == [{}, {"steps": 9}]


async def test_it_is_ready_once_every_stage_was_seen_live_and_stays_so(tmp_path: Path) -> None:
    table = chain("encoder", "decoder")
    encoder, decoder = (fake_worker(table, stage.name, tmp_path) for stage in table.stages)
    async with encoder, told(table) as (orchestrator, discovery):
        discovery.say(table, tmp_path, encoder=(0,), decoder=(0,))
        async with decoder:
            await asyncio.wait_for(orchestrator.wait_ready(), 5)
            assert orchestrator.servable() == {"image": True}
        await until(lambda: not orchestrator.servable()["image"])
        assert orchestrator.is_ready
        assert replicas_of(orchestrator) == {"encoder": {"encoder-0"}, "decoder": set()}


def speaker() -> StageTable:
    return stage_table([stage("thinker", "text"), stage("vocoder", "audio")], [edge("thinker", "vocoder")])


async def test_a_loss_names_the_output_and_the_stages_that_are_away(tmp_path: Path) -> None:
    table = speaker()
    async with fake_worker(table, "thinker", tmp_path), told(table) as (orchestrator, discovery):
        assert orchestrator.losses() == {
            "text": "no text: no replica of thinker is ready",
            "audio": "no audio: no replica of thinker, vocoder is ready",
        }
        discovery.say(table, tmp_path, thinker=(0,), vocoder=(0,))
        await until(lambda: orchestrator.servable()["text"])
        assert orchestrator.losses() == {"audio": "no audio: no replica of vocoder is ready"}
        assert not orchestrator.is_ready


async def test_a_frontend_that_waited_for_a_stage_in_vain_takes_requests_for_the_other_outputs(tmp_path: Path) -> None:
    table = speaker()
    async with fake_worker(table, "thinker", tmp_path), told(table, partial_ready_s=0.01) as (orchestrator, discovery):
        discovery.say(table, tmp_path, thinker=(0,), vocoder=(0,))
        await asyncio.wait_for(orchestrator.wait_ready(), 5)
        assert orchestrator.servable() == {"text": True, "audio": False}
        assert (await orchestrator.run(replace(request(), modalities=("text",)))).replicas == {"thinker": "thinker-0"}


async def test_a_frontend_that_can_serve_nothing_never_gets_ready(tmp_path: Path) -> None:
    table = speaker()
    async with fake_worker(table, "vocoder", tmp_path), told(table, partial_ready_s=0) as (orchestrator, discovery):
        discovery.say(table, tmp_path, thinker=(0,), vocoder=(0,))
        await until(lambda: replicas_of(orchestrator)["vocoder"] == {"vocoder-0"})
        await asyncio.sleep(0.01)
        assert not orchestrator.is_ready

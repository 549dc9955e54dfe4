"""Streaming edges from end to end: the real orchestrator and workers, fake engines, no process of its own."""

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from omni_contract.resolve import ResolvedModel
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload, Value
from omni_runtime.connectors.protocol import MemoryPlace
from omni_runtime.orchestrator.request import Completed, FinalChunk, SessionRequest, SessionResult
from omni_runtime.orchestrator.session import Session
from omni_runtime.worker.outputs import PARTS_AHEAD
from tests.support.item_engines import EarlyEngine, FailsOnce, ItemsEngine, SilentEngine
from tests.support.stage_servers import PAYLOAD_LIMIT_BYTES, RunningModel, fake_model_of, running_model

TEXT = {"output": {"modality": "text"}}
VIDEO = {"output": {"modality": "video"}}
"""Which the fake engine does not make, so that it gives back what reached it."""
SETTINGS = [
    None,
    {},
    {"chunkFrames": 7},
    {"chunkFrames": 25, "initialChunkFrames": 2, "leftContextFrames": 3},
    {"chunkFrames": 4, "leftContextFrames": 10},
    {"chunkFrames": 1000},
]
ids = itertools.count()


def fake(behavior: str = "echo", **settings: Any) -> dict[str, Any]:
    return {"fake": {"behavior": behavior, **settings}}


def edge(source: str, target: str, streaming: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"from": source, "to": target, **({} if streaming is None else {"streaming": streaming})}


def speaker(streaming: Mapping[str, Any] | None, steps: int = 60) -> ResolvedModel:
    """A thinker makes items, a talker hands each of them on, a vocoder answers with all of them."""
    stages = {"thinker": fake("burst", steps=steps), "talker": fake("relay"), "vocoder": fake() | VIDEO}
    return fake_model_of(stages, [edge("thinker", "talker", streaming), edge("talker", "vocoder", streaming)])


def asking(**fields: Any) -> SessionRequest:
    return SessionRequest(f"r{next(ids)}", {"prompt": "a fox"}, **fields)


async def answer(model: RunningModel, **fields: Any) -> SessionResult:
    return await model.orchestrator.run(asking(**fields))


async def until_idle(model: RunningModel) -> None:
    await until(lambda: model.is_idle and not model.orchestrator.open_sessions)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("10 s were not enough")


@pytest.mark.parametrize("streaming", SETTINGS)
async def test_the_answer_is_the_same_whether_edges_stream_and_how(
    tmp_path: Path, streaming: Mapping[str, Any] | None
) -> None:
    async with running_model(speaker(streaming), tmp_path) as model:
        [output] = (await answer(model)).outputs
        items = [{"prompt": "a fox", "item": number, "trail": ["thinker", "talker"]} for number in range(60)]
        assert output.payload == {"items": items, "trail": ["thinker", "talker", "vocoder"]}
        await until_idle(model)


async def test_many_requests_at_once_get_each_its_own_answer(tmp_path: Path) -> None:
    async with running_model(speaker({"chunkFrames": 3}), tmp_path) as model:
        requests = [SessionRequest(f"r{next(ids)}", {"prompt": f"tag-{number}"}) for number in range(30)]
        results = await asyncio.gather(*(model.orchestrator.run(request) for request in requests))
        prompts = [{item["prompt"] for item in items_of(result.outputs[0].payload)} for result in results]
        assert prompts == [{f"tag-{number}"} for number in range(30)]
        await until_idle(model)


def items_of(payload: Payload) -> list[dict[str, Value]]:
    items = payload["items"]
    assert isinstance(items, list)
    return items


async def test_a_consumer_starts_while_its_producer_still_runs(tmp_path: Path) -> None:
    thinker = ItemsEngine(2)
    async with running_model(speaker({}), tmp_path, {"thinker": thinker}) as model:
        session = model.orchestrator.submit(asking())
        await thinker.until_made(1)
        thinker.allow(1)
        await until(lambda: model.stages["vocoder"].capacity.running == 1)
        assert model.stages["thinker"].capacity.running == 1
        thinker.allow(1)
        assert [type(event) async for event in session][-1] is Completed
        await until_idle(model)


async def test_a_fan_in_reads_a_stream_and_a_whole_payload(tmp_path: Path) -> None:
    stages = {"codes": fake("burst", steps=5), "voice": fake("delay", delaySeconds=0.01), "vocoder": fake() | VIDEO}
    model_of = fake_model_of(stages, [edge("codes", "vocoder", {"chunkFrames": 2}), edge("voice", "vocoder", None)])
    async with running_model(model_of, tmp_path) as model:
        [output] = (await answer(model)).outputs
        assert output.payload["trail"] == ["codes", "voice", "vocoder"]
        assert [item["item"] for item in items_of(output.payload)] == list(range(5))
        await until_idle(model)


async def test_a_diamond_of_streams_much_longer_than_their_buffers_comes_together(tmp_path: Path) -> None:
    stages = {"a": fake("burst", steps=100), "b": fake("relay"), "c": fake("relay"), "d": fake("relay") | VIDEO}
    ends = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    async with running_model(fake_model_of(stages, [edge(*end, {}) for end in ends]), tmp_path) as model:
        parts = [item for chunk in (await answer(model)).chunks for item in chunk.items]
        for way in ("b", "c"):
            assert [part["item"] for part in parts if way in str(part["trail"])] == list(range(100))
        await until_idle(model)


@pytest.fixture
def memory() -> Iterator[MemoryPlace]:
    with TemporaryDirectory(dir="/dev/shm", prefix="omni-test-") as folder:
        yield MemoryPlace(Path(folder), "here")


async def test_large_items_stream_through_shared_memory_and_leave_it_empty(tmp_path: Path, memory: MemoryPlace) -> None:
    codes = ItemsEngine(40, {"codes": bytes(100_000)})
    codes.allow(40)
    over_shm = edge("codes", "vocoder", {"chunkFrames": 3, "leftContextFrames": 1}) | {"connector": "shm"}
    small = [{"name": "shm", "shm": {"size": "16Mi"}}]
    stages = {"codes": fake(), "vocoder": fake() | VIDEO}
    of = fake_model_of(stages, [over_shm], shares_memory=True, connectors=small)
    async with running_model(of, tmp_path, {"codes": codes}, memory) as model:
        [output] = (await answer(model)).outputs
        items = items_of(output.payload)
        assert [(item["item"], len(item["codes"])) for item in items] == [(n, 100_000) for n in range(40)]  # type: ignore[arg-type]
        await until_idle(model)
        [arena] = model.stages["codes"].connectors.arenas()
        await until(lambda: model.stages["codes"].connectors.arenas()[arena].used_bytes == 0)


@pytest.mark.case("runtime:S6")
@pytest.mark.parametrize("streaming", [None, {}])
async def test_a_stage_that_has_nothing_to_say_ends_its_consumers_and_its_client_in_order(
    tmp_path: Path, streaming: Mapping[str, Any] | None
) -> None:
    stages = {"talker": fake() | TEXT, "vocoder": fake("relay") | VIDEO}
    of = fake_model_of(stages, [edge("talker", "vocoder", streaming)])
    async with running_model(of, tmp_path, {"talker": SilentEngine(), "vocoder": SilentEngine()}) as model:
        result = await answer(model)
        assert [(chunk.modality, chunk.items, chunk.is_last) for chunk in sorted(result.chunks)] == [
            ("text", (), True),
            ("video", (), True),
        ]
        await until_idle(model)


async def test_a_stage_for_an_output_that_is_not_wanted_does_not_run(tmp_path: Path) -> None:
    stages = {"thinker": fake("burst", steps=3) | TEXT, "vocoder": fake() | VIDEO}
    async with running_model(fake_model_of(stages, [edge("thinker", "vocoder", {})]), tmp_path) as model:
        result = await answer(model, modalities=("text",))
        assert set(result.replicas) == {"thinker"}
        both = await answer(model)
        assert [item["item"] for chunk in both.chunks for item in chunk.items] == [0, 1, 2]
        assert [item["item"] for item in items_of(both.outputs[0].payload)] == [0, 1, 2]
        await until_idle(model)


async def test_a_final_output_comes_part_by_part_and_the_last_says_so(tmp_path: Path) -> None:
    async with running_model(fake_model_of({"thinker": fake("burst", steps=100) | TEXT}, []), tmp_path) as model:
        chunks = (await answer(model)).chunks
        assert [item["item"] for chunk in chunks for item in chunk.items] == list(range(100))
        assert [chunk.is_last for chunk in chunks] == [*[False] * (len(chunks) - 1), True]


async def test_a_part_that_is_too_large_for_a_message_is_freed_once_it_is_read(tmp_path: Path) -> None:
    engine = ItemsEngine(100, {"wave": bytes(100_000)})
    engine.allow(100)
    async with running_model(fake_model_of({"vocoder": fake() | VIDEO}, []), tmp_path, {"vocoder": engine}) as model:
        most, parts = 0, 0
        async with model.orchestrator.submit(asking()) as session:
            async for event in session:
                if isinstance(event, FinalChunk):
                    parts += len(event.items)
                    most = max(most, model.stages["vocoder"].connectors.census().payloads)
        assert parts == 100
        assert most <= 2 * PARTS_AHEAD
        await until_idle(model)


async def test_an_engine_waits_for_a_client_who_does_not_read(tmp_path: Path) -> None:
    engine = ItemsEngine(1000)
    engine.allow(1000)
    async with running_model(fake_model_of({"thinker": fake() | TEXT}, []), tmp_path, {"thinker": engine}) as model:
        async with model.orchestrator.submit(asking()) as session:
            await engine.until_made(PARTS_AHEAD + 1)
            await asyncio.sleep(0.05)
            assert engine.made == PARTS_AHEAD + 1
            assert len([event async for event in session if isinstance(event, FinalChunk)]) == 1001
        await until_idle(model)


async def test_a_producer_far_ahead_waits_for_a_consumer_that_does_not_read(tmp_path: Path) -> None:
    thinker = ItemsEngine(1000, {"wave": bytes(100_000)})
    thinker.allow(1000)
    stages = {"thinker": fake(), "vocoder": fake("stall") | VIDEO}
    of = fake_model_of(stages, [edge("thinker", "vocoder", {"chunkFrames": 2})])
    async with running_model(of, tmp_path, {"thinker": thinker}) as model:
        session = model.orchestrator.submit(asking())
        held = model.stages["thinker"].connectors.census
        await until(lambda: held().size_bytes > PAYLOAD_LIMIT_BYTES // 2 - 300_000)
        made = thinker.made
        await asyncio.sleep(0.05)
        assert thinker.made == made < 500 and held().size_bytes <= PAYLOAD_LIMIT_BYTES // 2
        session.abort()
        await until_idle(model)
        assert thinker.running == []


async def test_text_comes_at_its_own_pace_while_the_talker_works_for_others(tmp_path: Path) -> None:
    thinker = ItemsEngine(400, {"hidden": bytes(8192)})
    thinker.allow(400)
    stages = {"thinker": fake() | TEXT, "talker": fake("stall") | VIDEO | {"maxInFlight": 1}}
    async with running_model(
        fake_model_of(stages, [edge("thinker", "talker", {})]), tmp_path, {"thinker": thinker}
    ) as model:
        others = model.orchestrator.submit(asking())
        await until(lambda: model.stages["talker"].capacity.running == 1)
        session = model.orchestrator.submit(asking())
        thinker.allow(400)
        async for event in session:
            if isinstance(event, FinalChunk) and event.is_last:
                break
        assert (event.stage, model.stages["talker"].capacity.running) == ("thinker", 1)
        others.abort()
        session.abort()
        await until_idle(model)


async def test_a_producer_stops_when_its_only_consumer_has_ended_early(tmp_path: Path) -> None:
    items = 100_000
    thinker, early = ItemsEngine(items), EarlyEngine()
    thinker.allow(items)
    stages = {"thinker": fake(), "judge": fake() | TEXT}
    of = fake_model_of(stages, [edge("thinker", "judge", {})])
    async with running_model(of, tmp_path, {"thinker": thinker, "judge": early}) as model:
        result = await answer(model)
        assert result.outputs[0].payload == {"first": 0}
        await until_idle(model)
        assert thinker.made < items
        assert model.orchestrator.retries_total == 0


@pytest.mark.case("runtime:C1", "runtime:L30")
@pytest.mark.parametrize("parts_read", [0, 1, 10, 50])
async def test_a_client_who_leaves_at_any_point_leaves_nothing_behind(tmp_path: Path, parts_read: int) -> None:
    stages = {"thinker": fake("burst", steps=100), "talker": fake("relay") | VIDEO}
    async with running_model(fake_model_of(stages, [edge("thinker", "talker", {})]), tmp_path) as model:
        session = model.orchestrator.submit(asking())
        async with session:
            for _ in range(parts_read):
                assert isinstance(await anext(session), FinalChunk)
        await until_idle(model)


@pytest.mark.case("runtime:C3", "runtime:L27")
async def test_a_consumer_whose_stream_never_goes_on_ends_at_the_deadline(tmp_path: Path) -> None:
    thinker = ItemsEngine(5)
    thinker.allow(2)
    async with running_model(speaker({}), tmp_path, {"thinker": thinker}) as model:
        # Frontend and worker have the same deadline: either may say so first.
        with pytest.raises(OmniError, match=r'unfinished: thinker|passed at stage "thinker"') as caught:
            await answer(model, timeout_s=0.3)
        assert caught.value.code is ErrorCode.DEADLINE_EXCEEDED
        await until_idle(model)


@pytest.mark.case("runtime:C3")
@pytest.mark.parametrize("broken", ["thinker", "vocoder"])
async def test_a_failure_in_the_middle_of_a_stream_starts_producer_and_consumer_over(
    tmp_path: Path, broken: str
) -> None:
    engines = {"thinker": ItemsEngine(40), "vocoder": FailsOnce(after=0)}
    if broken == "thinker":
        engines = {"thinker": FailsOnce(after=20)}
    else:
        engines["thinker"].allow(1000)
    stages = {"thinker": fake(), "vocoder": fake() | VIDEO}
    of = fake_model_of(stages, [edge("thinker", "vocoder", {})])
    async with running_model(of, tmp_path, engines) as model:
        assert len(items_of((await answer(model)).outputs[0].payload)) == 40
        assert model.orchestrator.retries_total == 1
        await until_idle(model)


async def test_an_error_that_no_replica_can_mend_is_the_producers_own_though_a_consumer_was_reading(
    tmp_path: Path,
) -> None:
    bad = FailsOnce(after=20, error=OmniError(ErrorCode.INVALID_REQUEST, "the prompt is not a fox", "prompt"))
    stages = {"thinker": fake(), "vocoder": fake() | VIDEO}
    of = fake_model_of(stages, [edge("thinker", "vocoder", {})])
    async with running_model(of, tmp_path, {"thinker": bad}) as model:
        with pytest.raises(OmniError, match="not a fox"):
            await answer(model)
        await until_idle(model)


async def test_after_the_first_part_has_gone_to_the_client_a_failure_ends_the_answer(tmp_path: Path) -> None:
    stages = {"thinker": fake() | TEXT}
    thinker = FailsOnce(after=3, allowed=2)
    async with running_model(fake_model_of(stages, []), tmp_path, {"thinker": thinker}) as model:
        session = model.orchestrator.submit(asking())
        assert isinstance(await anext(session), FinalChunk)
        thinker.allow(10)
        with pytest.raises(OmniError, match="told to fail"):
            await read_to_end(session)
        await until_idle(model)


async def read_to_end(session: Session) -> None:
    async for _ in session:
        pass

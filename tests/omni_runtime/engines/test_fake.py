"""The fake engine: deterministic, and each behavior does what its name says."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from omni_contract.api.v1alpha1 import FakeEngine as FakeSettings
from omni_contract.wire.chunk import Chunk
from omni_contract.wire.errors import OmniError
from omni_contract.wire.payload import Array, Payload
from omni_runtime.engines.fake import FakeEngine, create
from omni_runtime.engines.protocol import (
    EngineDiedError,
    StageEvent,
    StageItem,
    StageOutput,
    StageProgress,
    StageRequest,
    StageUsage,
)
from omni_runtime.engines.registry import create_engine
from tests.omni_runtime.worker.stage_files import image_output, stage_file


def engine(modality: str | None = None, **settings: Any) -> FakeEngine:
    return FakeEngine("denoiser", FakeSettings(**settings), modality)


def request(
    inputs: dict[str, Payload] | None = None, outputs: tuple[str, ...] = ("",), **parameters: Any
) -> StageRequest:
    return StageRequest("r-1", inputs or {"": {"prompt": "a fox"}}, parameters, outputs)


async def events_of(fake: FakeEngine, asked: StageRequest) -> list[StageEvent]:
    return [event async for event in fake.run(asked)]


async def output_of(fake: FakeEngine, asked: StageRequest) -> Payload:
    [output] = [event for event in await events_of(fake, asked) if isinstance(event, StageOutput)]
    return output.payload


async def test_echo_gives_back_its_inputs_and_adds_itself_to_the_trail():
    assert await output_of(engine(), request({"a->b": {"x": 1, "trail": ["a"]}})) == {
        "x": 1,
        "trail": ["a", "denoiser"],
    }


async def test_a_fan_in_joins_the_trails_in_the_order_of_the_edges():
    joined = await output_of(engine(), request({"c->d": {"trail": ["a", "c"]}, "b->d": {"trail": ["a", "b"]}}))
    assert joined["trail"] == ["a", "b", "a", "c", "denoiser"]


async def test_each_edge_asked_for_gets_an_output():
    outputs = [e.edge for e in await events_of(engine(), request(outputs=("x->y", ""))) if isinstance(e, StageOutput)]
    assert outputs == ["x->y", ""]


async def test_a_delayed_request_may_say_how_many_steps_it_takes():
    slow = engine(behavior="delay", steps=2)
    counts = [len(await events_of(slow, request(**asked))) - 2 for asked in ({}, {"steps": 5})]
    assert counts == [2, 5]


async def test_steps_of_a_serial_engine_take_turns():
    fake = engine(behavior="delay", steps=3, delay_seconds=0.001, serial=True)
    turns: list[str] = []

    async def run(name: str) -> None:
        async for event in fake.run(request()):
            if isinstance(event, StageProgress):
                turns.append(name)

    await asyncio.gather(run("a"), run("b"))
    assert turns == ["a", "b"] * 3


async def test_burst_makes_an_item_for_each_edge_in_each_step():
    made = await items_made(engine(behavior="burst", steps=2), request(outputs=("x->y", "")))
    item = {"prompt": "a fox", "trail": ["denoiser"]}
    assert made == [(edge, {**item, "item": number}) for number in (0, 1) for edge in ("x->y", "")]


async def test_relay_hands_on_each_item_of_every_input_in_order():
    whole = Chunk(({"item": 0, "trail": ["a"]}, {"item": 1, "trail": ["a"]}), is_last=True).payload()
    asked = StageRequest("r-1", {"a->d": whole}, {}, ("",), {"b->d": stream({"item": 5}, {"item": 6})})
    made = [item for _, item in await items_made(engine(behavior="relay"), asked)]
    assert [item["item"] for item in made if "a" in str(item["trail"])] == [0, 1]
    assert [item["item"] for item in made if item["item"] >= 5] == [5, 6]


async def test_relay_may_hand_on_several_items_of_a_chunk_in_one_step():
    whole = Chunk(tuple({"item": number} for number in range(5)), is_last=True).payload()
    asked = StageRequest("r-1", {"a->d": whole}, {}, ("",))
    events = await events_of(engine(behavior="relay", items_per_step=2), asked)
    assert [event.payload["item"] for event in events if isinstance(event, StageItem)] == list(range(5))
    assert events[-1] == StageUsage(output_tokens=5, steps=3)
    [first, second, third] = await items_made(engine("audio", behavior="relay", items_per_step=2), asked)
    assert [len(made[1]["audio"].data) for made in (first, second, third)] == [3840, 3840, 1920]


async def test_follow_takes_in_an_item_before_each_step_and_goes_on_when_there_are_no_more():
    gate = asyncio.Event()
    asked = StageRequest("r-1", {}, {}, ("x->y",), {"a->b": stream({"trail": ["a"]}, gate=gate)})
    events = engine(behavior="follow", steps=3).run(asked)
    waiting = asyncio.create_task(anext(events))
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.set()
    made = [await waiting, *[event async for event in events]]
    assert made[:3] == [StageItem("x->y", {"item": number, "trail": ["a", "denoiser"]}) for number in range(3)]


async def test_follow_ends_when_it_has_made_enough_whatever_still_comes():
    asked = StageRequest("r-1", {}, {}, ("x->y",), {"a->b": stream(*({"item": number} for number in range(9)))})
    assert len(await items_made(engine(behavior="follow", steps=2), asked)) == 2


async def test_echo_gives_all_items_of_an_input_at_once():
    asked = StageRequest("r-1", {"a->d": {"x": 1}}, {}, ("",), {"b->d": stream({"item": 5}, {"item": 6})})
    assert await output_of(engine(), asked) == {"x": 1, "items": [{"item": 5}, {"item": 6}], "trail": ["denoiser"]}


@pytest.mark.case("runtime:L13")
async def test_an_engine_that_waits_for_a_chunk_or_for_its_reader_is_not_taken_for_dead():
    fake, gate = engine(behavior="relay"), asyncio.Event()
    asked = StageRequest("r-1", {}, {}, ("",), {"a->b": stream({"item": 1}, gate=gate)})
    events = fake.run(asked)
    waiting = asyncio.create_task(anext(events))
    await asyncio.sleep(0.01)
    assert fake.heartbeat_age_s() == 0
    gate.set()
    await waiting
    await asyncio.sleep(0.01)
    assert fake.heartbeat_age_s() == 0


async def items_made(fake: FakeEngine, asked: StageRequest) -> list[tuple[str, Any]]:
    return [(event.edge, event.payload) for event in await events_of(fake, asked) if isinstance(event, StageItem)]


async def stream(*items: Payload, gate: asyncio.Event | None = None) -> AsyncIterator[Chunk]:
    """A chunk for each item, the last of them empty."""
    if gate is not None:
        await gate.wait()
    for item in items:
        yield Chunk((item,))
    yield Chunk((), is_last=True)


async def test_an_image_has_the_size_asked_for_and_the_color_of_its_seed():
    fake = engine(modality="image")
    images = [(await output_of(fake, request(width=5, height=3, seed=seed)))["image"] for seed in (1, 1, 2)]
    assert all(isinstance(image, Array) and image.shape == (3, 5, 3) for image in images)
    assert images[0] == images[1] != images[2]


@pytest.mark.parametrize("width", [0, -1, "8", 1.5])
async def test_an_impossible_size_is_an_invalid_request_that_names_it(width: Any):
    with pytest.raises(OmniError) as caught:
        await events_of(engine(modality="image"), request(width=width, height=8))
    assert (caught.value.code, caught.value.param) == ("invalid_request", "width")


async def test_progress_is_reported_if_there_is_more_than_one_step():
    steps = [e for e in await events_of(engine(steps=3), request()) if isinstance(e, StageProgress)]
    assert [(e.step, e.total) for e in steps] == [(1, 3), (2, 3), (3, 3)]


async def test_crash_dies_as_the_step_begins_that_it_was_told():
    fake = engine(behavior="crash", crash_at=3, steps=2)
    await events_of(fake, request())
    with pytest.raises(EngineDiedError, match="crash at step 3"):
        await events_of(fake, request())


async def test_crash_at_zero_does_not_load():
    with pytest.raises(RuntimeError, match="crash while it loads"):
        await engine(behavior="crash", crash_at=0).load(lambda line: None)


async def test_stall_ages_until_it_is_cancelled():
    fake = engine(behavior="stall")
    task = asyncio.create_task(events_of(fake, request()))
    await asyncio.sleep(0.01)
    assert fake.heartbeat_age_s() > 0
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() and fake.heartbeat_age_s() == 0


async def test_leak_keeps_a_descriptor_for_each_step():
    fake, before = engine(behavior="leak"), open_descriptors()
    await events_of(fake, request())
    await events_of(fake, request())
    assert open_descriptors() == before + 2
    await fake.close()
    assert open_descriptors() == before


async def test_the_stage_file_decides_the_engine_and_its_output():
    made = create_engine(stage_file("painter", FakeSettings(steps=1), output=image_output()))
    assert isinstance(made, FakeEngine)
    assert "image" in await output_of(made, request(width=2, height=2))
    assert "image" not in await output_of(create(stage_file("painter")), request(width=2, height=2))


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the kernel's list, not a folder of ours

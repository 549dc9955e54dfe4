"""A diffusion engine that slept makes the same pictures as before, and leaves its memory to others meanwhile."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import numpy
import psutil
import pytest

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.codec import decode
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.engines.diffusion import create
from omni_runtime.engines.protocol import HasWeights, Profiles, ResetsCache, Sleeps, StageUsage
from tests.models.engines import FUSED, image, loaded, output, pixels, stage_file, stage_request, widened
from tests.omni_runtime.worker.frontend import discard, start
from tests.omni_runtime.worker.worker_process import WorkerProcess
from tests.support.reference_images import ReferenceRequest, reference_images

QUICK = ReferenceRequest("a red fox", negative_prompt=" ", steps=3, width=32, height=32)


THREAD_HEAP_BYTES = 64 * 2**20
"""What glibc may keep of a thread's freed memory, once it has stopped to map every large block on its own."""
CYCLES = 6
"""A cycle that left a tenth of the weights behind would keep more than a thread's heap after them."""
START_S = 300
"""Importing torch and diffusers alone takes a minute where many want the processor."""


def silent(line: str) -> None:
    """Nobody reads what loading tells."""


@pytest.fixture(scope="module")
def large_model(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 170 MiB."""
    return widened(tiny_model, tmp_path_factory.mktemp("models") / "large", heads=48)


def test_the_engine_says_what_it_can(tiny_model):
    engine = create(stage_file(tiny_model))
    assert isinstance(engine, Sleeps) and isinstance(engine, Profiles)
    assert not isinstance(engine, ResetsCache)


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("split", [(FUSED,), (("encode",), ("denoise",), ("decode",))], ids=["fused", "split"])
async def test_pictures_after_waking_equal_those_before_and_plain_diffusers(tiny_model, split, level):
    engines = [create(stage_file(tiny_model, phases)) for phases in split]
    for engine in engines:
        await engine.load(silent)
    before = await image(engines, QUICK)
    for engine in engines:
        assert await engine.sleep(level) > 0
        await engine.wake(silent)
    after = await image(engines, QUICK)
    for engine in engines:
        await engine.close()
    numpy.testing.assert_array_equal(after, before)
    numpy.testing.assert_array_equal(after, reference_images(tiny_model, [QUICK])[0])


async def test_waking_tells_what_it_does_and_tests_itself(tiny_model):
    async with loaded(stage_file(tiny_model, ("decode",))) as engine:
        await engine.sleep(2)
        lines: list[str] = []
        await engine.wake(lines.append)
    assert (lines[0], lines[-1]) == ("loading vae 1/1", "running a self-test")


@pytest.mark.parametrize("level", [1, 2])
async def test_an_engine_that_sleeps_gives_its_memory_to_the_operating_system(large_model, level):
    awake, asleep = [], []
    async with loaded(stage_file(large_model, ("denoise",), load_format="dummy")) as engine:
        for _ in range(CYCLES):
            awake.append(resident_bytes())
            freed = await engine.sleep(level)
            asleep.append(resident_bytes())
            await engine.wake(silent)
    assert freed > 100 * 2**20
    assert awake[0] - asleep[0] > 0.8 * freed
    assert awake[1] - asleep[0] > 0.8 * freed
    assert max(asleep) - min(asleep) < 1.1 * THREAD_HEAP_BYTES


async def test_the_weights_on_the_device_are_told_for_the_metrics(tiny_model):
    engine = create(stage_file(tiny_model))
    assert isinstance(engine, HasWeights) and engine.weights_bytes == 0
    await engine.load(silent)
    loaded_bytes = engine.weights_bytes
    assert await engine.sleep(1) == loaded_bytes > 0
    assert engine.weights_bytes == 0
    await engine.wake(silent)
    assert engine.weights_bytes == loaded_bytes
    [made] = await usage_of(engine)
    assert made.postprocess_seconds > 0
    await engine.close()


async def usage_of(engine):
    """The usage of one request."""
    return [event async for event in engine.run(stage_request(QUICK)) if isinstance(event, StageUsage)]


async def test_a_sleeping_engine_is_alive_and_refuses_requests(tiny_model):
    async with loaded(stage_file(tiny_model)) as engine:
        await engine.sleep(1)
        assert engine.heartbeat_age_s() == 0
        with pytest.raises(OmniError) as refused:
            await output(engine, stage_request(QUICK))
        assert refused.value.code is ErrorCode.STAGE_UNAVAILABLE


async def test_an_engine_whose_checkpoint_is_gone_stays_asleep_and_wakes_when_it_is_back(tiny_model, tmp_path):
    folder, elsewhere = tmp_path / "model", tmp_path / "elsewhere"
    shutil.copytree(tiny_model, folder)
    async with loaded(stage_file(folder)) as engine:
        await engine.sleep(2)
        folder.rename(elsewhere)
        for _ in range(2):
            with pytest.raises(OmniError, match=r"no model_index\.json"):
                await engine.wake(silent)
        elsewhere.rename(folder)
        await engine.wake(silent)
        assert (await image([engine], QUICK)).shape == (32, 32, 3)


async def test_closing_while_it_wakes_ends_both(tiny_model):
    engine = create(stage_file(tiny_model))
    await engine.load(silent)
    await engine.sleep(2)
    waking = asyncio.create_task(engine.wake(silent))
    await asyncio.sleep(0)
    await engine.close()
    with pytest.raises(Exception, match=r"cancelled|has ended"):
        await waking


async def test_a_worker_of_the_tiny_model_sleeps_and_wakes_with_equal_pictures(large_model, tmp_path):
    """As `omni serve` runs it, asked from outside: what control thaws and freezes in the heap is part of it."""
    file = stage_file(large_model, load_format="dummy")
    async with WorkerProcess(file, tmp_path, wait_ready=False) as worker:
        await worker.until_serving("ready", patience_s=START_S)
        process = psutil.Process(worker.pid)
        before = await picture_of(worker, "r-1")
        awake = process.memory_info().rss
        freed = (await worker.control.Sleep(wire.SleepRequest(level=2, timeout_ms=10_000))).freed_bytes
        asleep = process.memory_info().rss
        await worker.control.Wake(wire.WakeRequest(), timeout=START_S)
        after = await picture_of(worker, "r-2")
    assert awake - asleep > 0.8 * freed
    numpy.testing.assert_array_equal(after, before)


async def picture_of(worker: WorkerProcess, request_id: str) -> Any:
    parameters = {"width": 32, "height": 32, "steps": 3, "guidance_scale": 4.0, "seed": 1}
    async with worker.attached() as frontend:
        frontend.send(start(request_id, payload={"prompt": "a red fox"}, **parameters))
        assert (await frontend.terminal(request_id)).HasField("finished")
        [made] = [one for message in frontend.of(request_id) for one in message.outputs]
        frontend.send(discard(request_id))
    return pixels(decode(made.inline))


def resident_bytes() -> int:
    return psutil.Process().memory_info().rss

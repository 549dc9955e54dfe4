"""A stage on a GPU that sleeps: its memory is free for others, and its pictures are the same afterwards."""

import gzip
import json
from pathlib import Path
from time import monotonic

import numpy
import pytest
import torch

from tests.gpu.test_images import REQUESTS, VENDOR, model
from tests.models.engines import image, loaded, stage_file, widened

pytestmark = pytest.mark.gpu

__all__ = ["model"]


@pytest.fixture(scope="module")
def large_model(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 1.2 GiB."""
    return widened(model, tmp_path_factory.mktemp("models") / "large", heads=128)


@pytest.mark.parametrize("level", [1, 2])
async def test_the_device_is_free_while_the_stage_sleeps(large_model: Path, level: int):
    async with loaded(stage_file(large_model, vendor=VENDOR, load_format="dummy")) as engine:
        before = await image([engine], REQUESTS[1])
        awake = torch.cuda.memory_reserved()
        freed = await engine.sleep(level)
        asleep = torch.cuda.memory_reserved()
        lines: list[str] = []
        began = monotonic()
        await engine.wake(lines.append)
        print(f"{freed / 2**30:.2f} GiB given back at level {level}, awake again in {monotonic() - began:.2f} s")
        after = await image([engine], REQUESTS[1])
    assert freed > 2**30
    assert awake - asleep > 0.95 * freed
    assert any("moving the weights" in line for line in lines) == (level == 1)
    numpy.testing.assert_array_equal(after, before)


async def test_a_profile_holds_the_kernels_of_the_device(model: Path, tmp_path: Path):
    trace = tmp_path / "trace.json.gz"
    async with loaded(stage_file(model, vendor=VENDOR)) as engine:
        await engine.start_profile(trace, 3)
        await image([engine], REQUESTS[0])
        profile = await engine.stop_profile()
    assert profile is not None and profile.steps == 3
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    assert sum(event.get("cat") == "kernel" for event in events) > 100

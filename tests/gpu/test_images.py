"""Pictures on a GPU equal plain diffusers on the same GPU, fused and split; a request without memory hurts nobody."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import numpy
import pytest
import torch

from omni_contract.accelerators import Vendor
from omni_contract.api.v1alpha1 import DiffusionEngine as DiffusionBlock
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.families.registry import family
from tests.models.engines import image, loaded, output, stage_file, stage_request
from tests.support.reference_images import ReferenceRequest, reference_images

pytestmark = pytest.mark.gpu

SPLITS = [(("encode", "denoise", "decode"),), (("encode",), ("denoise",), ("decode",))]
REQUESTS = [
    ReferenceRequest("a red fox", seed=1),
    ReferenceRequest("a red fox", negative_prompt=" ", seed=2, steps=8),
    ReferenceRequest("the lazy dog", negative_prompt="blurry", width=256, height=128, guidance_scale=2.5, seed=3),
]
VENDOR = Vendor.ROCM if torch.version.hip else Vendor.NVIDIA


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "qwen-image"
    family("qwen-image").build_tiny(folder, 0, lambda line: None)
    return folder


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("split", SPLITS, ids=["fused", "split"])
async def test_pictures_made_at_once_equal_plain_diffusers(model, split, dtype):
    async with AsyncExitStack() as stack:
        files = [
            stage_file(model, vendor=VENDOR, engine=DiffusionBlock(phases=phases, dtype=dtype)) for phases in split
        ]
        engines = [await stack.enter_async_context(loaded(file)) for file in files]
        ours = await asyncio.gather(*(image(engines, request) for request in REQUESTS))
    for one, reference in zip(ours, reference_images(model, REQUESTS, "cuda", dtype), strict=True):
        numpy.testing.assert_array_equal(one, reference)


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Enough for the model and a small picture."""
    torch.cuda.set_per_process_memory_fraction(0.005)
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)


async def test_a_request_that_needs_more_memory_than_there_is_fails_alone(model, little_memory):
    async with loaded(stage_file(model, vendor=VENDOR)) as engine:
        huge = ReferenceRequest("a red fox", width=4096, height=4096)
        failure, good = await asyncio.gather(
            output(engine, stage_request(huge)), image([engine], REQUESTS[0]), return_exceptions=True
        )
        after = await image([engine], REQUESTS[0])
    assert isinstance(failure, OmniError) and failure.code is ErrorCode.OUT_OF_MEMORY
    numpy.testing.assert_array_equal(good, reference_images(model, REQUESTS[:1], "cuda")[0])
    numpy.testing.assert_array_equal(after, good)

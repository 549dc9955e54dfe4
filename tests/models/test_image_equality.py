"""Splitting, interleaving and owning the loop change no pixel: the judge is plain diffusers in a process of its own."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import numpy
import pytest

from omni_contract.api.v1alpha1 import DiffusionPhase
from tests.models.engines import FUSED, image, loaded, stage_file
from tests.support.reference_images import ReferenceRequest, reference_images

SEEDS = (0, 1, 7)
SPLITS: list[tuple[tuple[DiffusionPhase, ...], ...]] = [
    (FUSED,),
    (("encode",), ("denoise",), ("decode",)),
    (("encode", "denoise"), ("decode",)),
    (("encode",), ("denoise", "decode")),
]
VARIED = [
    ReferenceRequest("a red fox", seed=0),
    ReferenceRequest("a red fox", seed=1),
    ReferenceRequest("a red fox", negative_prompt="blurry", seed=2),
    ReferenceRequest("a red fox", negative_prompt="", guidance_scale=2.5, steps=5, seed=3),
    ReferenceRequest("a red fox", negative_prompt="blurry", guidance_scale=1.0, seed=4),
    ReferenceRequest("the lazy dog", width=96, height=32, steps=9, seed=5),
    ReferenceRequest("", negative_prompt="x", width=16, height=16, steps=2, seed=6),
    ReferenceRequest("Füchse 狐狸 🦊" * 200, width=48, height=80, steps=4, seed=7),
]


async def pictures(
    model: Path, split: Sequence[Sequence[DiffusionPhase]], requests: Sequence[ReferenceRequest]
) -> list[object]:
    """All requests at once."""
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(loaded(stage_file(model, phases))) for phases in split]
        return list(await asyncio.gather(*(image(engines, request) for request in requests)))


@pytest.mark.case("runtime:B13")
@pytest.mark.parametrize("split", SPLITS, ids=lambda split: "|".join("+".join(phases) for phases in split))
async def test_every_split_makes_the_pixels_of_plain_diffusers(tiny_model, split):
    requests = [ReferenceRequest("a red fox", negative_prompt=" ", seed=seed) for seed in SEEDS]
    for ours, reference in zip(
        await pictures(tiny_model, split, requests), reference_images(tiny_model, requests), strict=True
    ):
        numpy.testing.assert_array_equal(ours, reference)


@pytest.mark.case("runtime:B5", "runtime:B10")
@pytest.mark.parametrize("split", SPLITS[:2], ids=["fused", "split"])
async def test_eight_unlike_requests_at_once_equal_their_single_runs(tiny_model, split):
    for ours, reference in zip(
        await pictures(tiny_model, split, VARIED), reference_images(tiny_model, VARIED), strict=True
    ):
        numpy.testing.assert_array_equal(ours, reference)


def test_three_seeds_and_three_prompts_give_visibly_different_pictures(tiny_model):
    requests = [ReferenceRequest("a red fox", seed=seed) for seed in SEEDS]
    requests += [ReferenceRequest(prompt) for prompt in ("the lazy dog", "hello world")]
    images = [image.astype(int) for image in reference_images(tiny_model, requests)]
    for position, one in enumerate(images):
        for other in images[:position]:
            assert numpy.abs(one - other).mean() > 2

"""Chunks, batches and steps change no sound that could be heard.

The judge is plain transformers, or the family's own package, in a process of its own.
"""

import asyncio
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch

from tests.models.sounds import Speech, loaded, off, pieces, reference_sounds, sound, stage_file

LENGTHS = {
    "qwen2.5-omni": (1, 3, 26, 61),
    "qwen3-omni": (1, 2, 3, 17, 26, 40, 64, 111),
    "qwen3-tts": (1, 2, 3, 17, 26, 40, 64, 330),
}
SMALLEST_STEP = 1 / 2**15
"""Of sound in 16 bits. What is off by less than a third of it is rounding of floats in another order."""
pytestmark = pytest.mark.parametrize("family", LENGTHS)


def speeches(family: str) -> list[Speech]:
    return [Speech(family, frames, seed) for seed, frames in enumerate(LENGTHS[family])]


@pytest.fixture(scope="module")
def judged(tiny_checkpoint: Callable[[str], Path]) -> Callable[[str], list[torch.Tensor]]:
    return cache(lambda family: reference_sounds(tiny_checkpoint(family), speeches(family)))


@pytest.mark.case("runtime:S8", "runtime:S4", "runtime:S20")
async def test_sound_is_that_of_transformers_whole_and_alone_or_in_chunks_among_others(family, tiny_checkpoint, judged):
    """Unlike speeches at once share steps; each comes in chunks of its own."""
    async with loaded(stage_file(family, tiny_checkpoint(family))) as engine:
        alone = [await sound(engine, speech.request()) for speech in speeches(family)]
        streams = [speech.streamed(speech.parts(speech.seed)) for speech in speeches(family)]
        among = await asyncio.gather(*(sound(engine, stream) for stream in streams))
    for whole, chunked, reference in zip(alone, among, judged(family), strict=True):
        assert off(whole, reference) < SMALLEST_STEP / 3
        assert off(chunked, reference) < SMALLEST_STEP / 3


@pytest.mark.case("runtime:S1", "runtime:S21")
async def test_sound_leaves_in_pieces_whose_sum_is_exact(family, tiny_checkpoint, judged):
    speech = speeches(family)[-1]
    async with loaded(stage_file(family, tiny_checkpoint(family))) as engine:
        made = await pieces(engine, speech.streamed([5, 25, 25, 25, 25]))
    assert len(made) > 1
    assert off(torch.cat(made), judged(family)[-1]) < SMALLEST_STEP / 3


async def test_other_codes_can_be_heard_and_a_repetition_is_the_same(family, tiny_checkpoint):
    """Else none of these tests could fail."""
    async with loaded(stage_file(family, tiny_checkpoint(family))) as engine:
        once, again, other = [await sound(engine, Speech(family, 10, seed).request()) for seed in (0, 0, 1)]
    assert off(once, again) == 0
    assert off(once, other) > 1000 * SMALLEST_STEP

"""A profile of a diffusion stage: what is in the trace, that it ends, and that it changes no picture."""

import asyncio
import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from omni_runtime.engines.diffusion import create
from tests.models.engines import image, loaded, stage_file
from tests.support.reference_images import ReferenceRequest, reference_images

QUICK = ReferenceRequest("a red fox", steps=4, width=32, height=32)
"""Encode, four steps and decode: six turns."""


def names_in(trace: Path) -> list[str]:
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    return [event["name"] for event in sorted(events, key=lambda event: event.get("ts", 0)) if event.get("ph") == "X"]


async def test_the_trace_holds_each_turn_of_each_request_with_its_operators(tiny_model, tmp_path):
    trace = tmp_path / "trace.json.gz"
    async with loaded(stage_file(tiny_model)) as engine:
        await engine.start_profile(trace, 100)
        assert engine.is_profiling
        two = [replace(QUICK, seed=seed) for seed in (1, 2)]
        pictures = await asyncio.gather(*(image([engine], request) for request in two))
        profile = await engine.stop_profile()
    assert profile is not None and (profile.trace, profile.steps) == (trace, 12)
    names = names_in(trace)
    turns = [f"request-{seed} turn {turn}" for turn in range(1, 7) for seed in (1, 2)]
    assert [name for name in names if name.startswith("request-")] == turns
    assert sum(name.startswith("aten::") for name in names) > 1000
    for ours, reference in zip(pictures, reference_images(tiny_model, two), strict=True):
        numpy.testing.assert_array_equal(ours, reference)


async def test_a_profile_ends_by_itself_and_the_request_goes_on(tiny_model, tmp_path):
    trace = tmp_path / "trace.json.gz"
    async with loaded(stage_file(tiny_model)) as engine:
        await engine.start_profile(trace, 2)
        await image([engine], QUICK)
        assert not engine.is_profiling
        assert [name for name in names_in(trace) if name.startswith("request-")] == [
            "request-0 turn 1",
            "request-0 turn 2",
        ]
        profile = await engine.stop_profile()
        assert profile is not None and profile.steps == 2
        assert await engine.stop_profile() is None
    assert list(tmp_path.iterdir()) == [trace]


async def test_closing_the_engine_writes_the_profile(tiny_model, tmp_path):
    trace = tmp_path / "trace.json.gz"
    engine = create(stage_file(tiny_model))
    await engine.load(lambda line: None)
    await engine.start_profile(trace, 100)
    await image([engine], QUICK)
    await engine.close()
    assert len([name for name in names_in(trace) if name.startswith("request-")]) == 6


async def test_a_trace_that_cannot_be_written_fails_no_request_and_is_told(tiny_model, tmp_path):
    folder = tmp_path / "gone"
    async with loaded(stage_file(tiny_model)) as engine:
        await engine.start_profile(folder / "trace.json.gz", 2)
        assert (await image([engine], QUICK)).shape == (32, 32, 3)
        with pytest.raises(OSError, match="gone"):
            await engine.stop_profile()
        assert (await image([engine], QUICK)).shape == (32, 32, 3)

"""What a seed draws is the same however a model is set up: one replica or three, chunks or wholes, alone or in a crowd.

Over real processes and the orchestrator itself, since ids of words and codes are compared exactly, and a client hears
only the sound of the codes.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy
import pytest
import yaml

from omni_contract.wire.payload import Array, Payload
from omni_runtime.offline.local_model import resolved, running_model
from omni_runtime.offline.settings import settings_of
from omni_runtime.orchestrator import Orchestrator, SessionRequest
from tests.layout.source import CHECKOUT
from tests.support.speech_chats import assert_same_sound, in_16_bits

RUNS, NEIGHBOURS = 10, 16
SEED = 5
CODES = "video"
"""The talker's codes are an output of their own here, under the name of a modality that these models do not have."""
LIMITS: dict[str, Any] = {"talker.max_tokens": 24}
DRAWN_WORDS = {"thinker.temperature": 0.9, "thinker.max_tokens": 12, "thinker.min_tokens": 12}


@dataclass(frozen=True)
class Drawn:
    """What a request got, and which replica of each stage served it. `sound` is float32[samples]."""

    words: tuple[int, ...]
    codes: tuple[int, ...]
    sound: Any
    replicas: Mapping[str, str]


@dataclass(frozen=True)
class Family:
    name: str
    payload: Payload
    engines: Mapping[str, Any]
    """What a stage's block holds beside the example's."""
    parameters: Mapping[str, Any]


FAMILIES = (
    Family(
        "qwen2.5-omni",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "over the lazy dog"}]}]},
        {"thinker": {"ar": {"backend": "transformers"}}},
        LIMITS | DRAWN_WORDS | {"voice": "Ethan"},
    ),
    Family("qwen3-tts", {"input": "the quick brown fox", "voice": "ryan"}, {}, LIMITS),
)


def model_file(family: Family, folder: Path, replicas: int, streams: bool) -> Path:
    """The example, with so many replicas of each stage."""
    model = yaml.safe_load((CHECKOUT / "examples" / f"tiny-{family.name}.yaml").read_text())
    stages = model["spec"]["stages"]
    for stage in stages:
        stage |= {"replicas": replicas, **family.engines.get(stage["name"], {})}
        if stage["name"] == "talker":
            stage["output"] = {"modality": CODES}
    if not streams:
        names = [stage["name"] for stage in stages]
        whole = {"streaming": {"enabled": False}}
        model["spec"]["edges"] = [{"from": one, "to": after, **whole} for one, after in pairwise(names)]
    file = folder / f"{replicas}.yaml"
    file.write_text(yaml.safe_dump(model))
    return file


async def draw(model: Orchestrator, family: Family, name: str, seed: int) -> Drawn:
    request = SessionRequest(name, family.payload, {**family.parameters, "seed": seed})
    answer = await model.run(request)
    items = [(chunk.modality, item) for chunk in answer.chunks for item in chunk.items]
    words = [token for modality, item in items if modality == "text" for token in item["token_ids"]]
    codes = [values_of(item["codes"], numpy.int32) for modality, item in items if modality == CODES]
    sound = [values_of(item["audio"], numpy.float32) for modality, item in items if modality == "audio"]
    frames = tuple(int(code) for frame in codes for code in frame)
    return Drawn(tuple(words), frames, numpy.concatenate(sound), answer.replicas)


def values_of(array: object, kind: Any) -> Any:
    assert isinstance(array, Array) and numpy.dtype(array.dtype) == kind
    return numpy.frombuffer(array.data, dtype=kind)


async def drawn(family: Family, file: Path, models: Path) -> tuple[list[Drawn], list[Drawn]]:
    """Of one seed, in several runs alone and once in a crowd; and what its neighbours there got for seeds of theirs."""
    settings = settings_of(file, {"models": models}, {}).serve
    async with running_model(resolved(settings), settings) as model:
        alone = [await draw(model, family, f"alone-{number}", SEED) for number in range(RUNS)]
        seeds = [SEED, *range(100, 100 + NEIGHBOURS)]
        crowd = [draw(model, family, f"crowd-{seed}", seed) for seed in seeds]
        within, *neighbours = await asyncio.gather(*crowd)
    return [*alone, within], neighbours


def assert_same(ours: Drawn, theirs: Drawn) -> None:
    assert (ours.words, ours.codes) == (theirs.words, theirs.codes)
    if ours.codes:
        assert_same_sound(in_16_bits(ours.sound), in_16_bits(theirs.sound))
    else:
        assert len(ours.sound) == len(theirs.sound) == 0, "the first code may be the one that ends the speech"


@pytest.mark.case("runtime:B7")
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
async def test_a_seed_draws_the_same_in_ten_runs_and_a_crowd_over_one_replica_whole_and_over_three_in_chunks(
    family: Family, models: Path, tmp_path: Path
) -> None:
    whole, others = await drawn(family, model_file(family, tmp_path, 1, streams=False), models)
    chunked, others_chunked = await drawn(family, model_file(family, tmp_path, 3, streams=True), models)
    first = whole[0]
    for each in (*whole[1:], *chunked):
        assert_same(each, first)
    for one, other in zip(others, others_chunked, strict=True):
        assert_same(other, one)
    assert first.codes and len({one.codes for one in others} - {first.codes}) > NEIGHBOURS // 2
    for stage in first.replicas:
        assert len({one.replicas[stage] for one in (*chunked, *others_chunked)}) == 3

"""What a seed draws from a model that speaks: its words, its codes and their sound, alone and in a crowd."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from omni_contract.wire.payload import Array, Payload
from omni_runtime.orchestrator import Orchestrator, SessionRequest
from tests.support.setups import SETUPS, Setups
from tests.support.speech_chats import assert_same_sound, in_16_bits

RUNS, NEIGHBOURS = 10, 16
SEED = 5
CODES = "video"
"""The talker's codes are an output of their own here, under the name of a modality that these models do not have."""


@dataclass(frozen=True)
class Speaker:
    """What is asked of a model, but for the seed."""

    payload: Payload
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Drawn:
    """What a request got, and which replica of each stage served it. `sound` is float32[samples]."""

    words: tuple[int, ...]
    codes: tuple[int, ...]
    sound: Any
    replicas: Mapping[str, str]


async def draw(model: Orchestrator, speaker: Speaker, name: str, seed: int) -> Drawn:
    request = SessionRequest(name, speaker.payload, {**speaker.parameters, "seed": seed})
    answer = await model.run(request)
    items = [(chunk.modality, item) for chunk in answer.chunks for item in chunk.items]
    words = [token for modality, item in items if modality == "text" for token in item["token_ids"]]
    codes = [code for modality, item in items if modality == CODES for code in codes_of(item)]
    sound = [values_of(item["audio"], numpy.float32) for modality, item in items if modality == "audio"]
    return Drawn(tuple(words), tuple(codes), numpy.concatenate(sound), answer.replicas)


def codes_of(item: Payload) -> list[int]:
    """On vLLM, the first of each frame: they are the talker's tokens. The others are heard."""
    if "codes" not in item:
        return list(item["token_ids"])
    codes: list[int] = values_of(item["codes"], numpy.int32).tolist()
    return codes


def values_of(array: object, kind: Any) -> Any:
    assert isinstance(array, Array) and numpy.dtype(array.dtype) == kind
    return numpy.frombuffer(array.data, dtype=kind)


async def assert_a_seed_draws_the_same(setups: Setups, speaker: Speaker) -> None:
    """In several runs alone and once in a crowd, of every setup; and so do the seeds of its neighbours there."""
    first, others = None, list[Drawn]()
    for setup, replicas in enumerate(SETUPS):
        async with setups.model(setup) as model:
            ours, neighbours = await drawn(model, speaker)
        first, others = first or ours[0], others or neighbours
        for one, other in zip([*ours, *neighbours], [first] * len(ours) + others, strict=True):
            assert_same(one, other)
        for stage in setups.several:
            assert {one.replicas[stage] for one in neighbours} == {f"{stage}-{number}" for number in replicas}
    assert first is not None and first.codes
    for kind in ("codes", "words") if first.words else ("codes",):
        assert len({getattr(one, kind) for one in others}) > NEIGHBOURS // 2


async def drawn(model: Orchestrator, speaker: Speaker) -> tuple[list[Drawn], list[Drawn]]:
    """Of one seed, in several runs alone and once in a crowd; and what its neighbours there got for seeds of theirs."""
    alone = [await draw(model, speaker, f"alone-{number}", SEED) for number in range(RUNS)]
    seeds = [SEED, *range(100, 100 + NEIGHBOURS)]
    within, *neighbours = await asyncio.gather(*(draw(model, speaker, f"crowd-{seed}", seed) for seed in seeds))
    return [*alone, within], neighbours


def assert_same(ours: Drawn, theirs: Drawn) -> None:
    assert (ours.words, ours.codes) == (theirs.words, theirs.codes)
    if len(theirs.sound):
        assert_same_sound(in_16_bits(ours.sound), in_16_bits(theirs.sound))
    else:
        assert len(ours.sound) == 0, "the first code may be the one that ends the speech"

"""Thinker and talker of a tiny Qwen3-Omni in engines of their own: frames equal to transformers' whole model."""

import asyncio
from typing import Any

import numpy
import pytest
import pytest_asyncio

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Payload, Value
from omni_runtime.engines.protocol import StageItem, StageRequest, StageUsage
from tests.models.ar_engines import ar_file, loaded
from tests.models.media_requests import judged
from tests.models.thoughts import EDGE, chunks, said, shown, thought, whole, words

pytestmark = pytest.mark.asyncio(loop_scope="module")

ON = "talker->code2wav"
GREEDY: dict[str, Value] = {"temperature": 0.0, "max_tokens": 21}
DRAWN: dict[str, Value] = {"max_tokens": 21, "seed": 7}
ENDS_BY_ITSELF = 17
REQUESTS = [
    said("hello world", "Chelsie"),
    said("hello world", "Ethan"),
    said("the quick brown fox", "Ethan"),
    *shown("Chelsie"),
]


@pytest.fixture(scope="module")
def tiny(tiny_checkpoint):
    return tiny_checkpoint("qwen3-omni")


@pytest.fixture(scope="module")
def reference(tiny, tmp_path_factory):
    return judged("ar_frames_reference.py", tiny, REQUESTS, tmp_path_factory.mktemp("judge"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def thoughts(tiny):
    async with loaded(ar_file(tiny, "thinker", family="qwen3-omni")) as thinker:
        return await asyncio.gather(*(thought(thinker, request) for request in REQUESTS))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talker(tiny):
    async with loaded(ar_file(tiny, "talker", family="qwen3-omni", max_in_flight=17, max_sequences=17)) as talker:
        yield talker


def speech(items: list[Payload], voice: str, number: int = 0, **parameters: Value) -> StageRequest:
    return StageRequest(f"t{number}", {EDGE: whole(items)}, {**parameters, "voice": voice}, (ON,))


def streamed(items: list[Payload], size: int, voice: str, number: int = 0, **parameters: Value) -> StageRequest:
    streams = {EDGE: chunks(items, size)}
    return StageRequest(f"t{number}", {}, {**parameters, "voice": voice}, (ON,), streams)


async def frames(talker: Any, request: StageRequest) -> list[list[int]]:
    """Each frame's codes."""
    made: list[list[int]] = []
    async for event in talker.run(request):
        if isinstance(event, StageItem):
            array = event.payload["codes"]
            assert isinstance(array, Array) and (array.dtype, array.shape) == ("int32", (4, 1))
            made += numpy.frombuffer(array.data, dtype=numpy.int32).reshape(array.shape).T.tolist()
        else:
            assert isinstance(event, StageUsage) and event.output_tokens == len(made)
    return made


def wanted(reference: Any, number: int) -> list[list[int]]:
    codes: list[list[int]] = reference[f"codes.{number}"].T.tolist()
    return codes


async def test_frames_equal_those_of_transformers_alone_and_together(talker, thoughts, reference):
    assert [words(items) for items in thoughts] == [
        reference[f"text.{number}"].tolist() for number in range(len(REQUESTS))
    ]
    every = [wanted(reference, number) for number in range(len(REQUESTS))]
    asked = [(items, request["voice"]) for items, request in zip(thoughts, REQUESTS, strict=True)]
    alone = [await frames(talker, speech(*one, **GREEDY)) for one in asked]
    together = await asyncio.gather(
        *(frames(talker, speech(*one, number, **GREEDY)) for number, one in enumerate(asked))
    )
    assert alone == every
    assert together == every
    assert {len(one) for one in every} == {ENDS_BY_ITSELF, 20}, "one ends by itself, and the end is no frame"


@pytest.mark.parametrize("size", [1, 4, 100])
async def test_frames_are_the_same_however_the_thinkers_rows_come(talker, thoughts, reference, size):
    assert await frames(talker, streamed(thoughts[1], size, "Ethan", **GREEDY)) == wanted(reference, 1)


async def test_the_least_number_of_tokens_counts_from_the_first_however_the_rows_come(talker, thoughts, reference):
    [number] = (number for number in range(len(REQUESTS)) if len(wanted(reference, number)) == ENDS_BY_ITSELF)
    voice = REQUESTS[number]["voice"]

    async def made(size: int, least: int) -> list[list[int]]:
        return await frames(talker, streamed(thoughts[number], size, voice, **GREEDY, min_tokens=least))

    for size in (1, 4, 100):
        assert await made(size, ENDS_BY_ITSELF) == wanted(reference, number)
    longer = [await made(size, ENDS_BY_ITSELF + 2) for size in (1, 4, 100)]
    assert len(longer[0]) > ENDS_BY_ITSELF and longer == [longer[0]] * 3


async def test_a_seed_makes_the_same_frames_in_ten_runs_and_among_sixteen_neighbours(talker, thoughts, reference):
    first = await frames(talker, speech(thoughts[1], "Ethan", **DRAWN))
    for size in (1, 4, 100) * 3:
        assert await frames(talker, streamed(thoughts[1], size, "Ethan", **DRAWN)) == first
    neighbours = (speech(thoughts[number % 3], "Aiden", number, **DRAWN | {"seed": number}) for number in range(1, 17))
    crowd = await asyncio.gather(
        frames(talker, streamed(thoughts[1], 1, "Ethan", **DRAWN)), *(frames(talker, one) for one in neighbours)
    )
    assert crowd[0] == first
    assert len({str(one) for one in crowd}) == 17
    assert first != wanted(reference, 1)


async def test_a_voice_that_is_not_there_is_refused(talker, thoughts):
    with pytest.raises(OmniError, match="the voices are aiden, chelsie, ethan") as caught:
        await frames(talker, speech(thoughts[0], "Nobody", **GREEDY))
    assert (caught.value.code, caught.value.param) == (ErrorCode.INVALID_REQUEST, "voice")
    assert talker.unfinished == 0

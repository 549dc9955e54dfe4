"""Thinker and talker of a tiny Qwen2.5-Omni in engines of their own: codes equal to transformers' whole model."""

import asyncio
from collections.abc import AsyncIterator

import numpy
import pytest
import pytest_asyncio

from omni_contract.wire.chunk import Chunk
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array
from omni_runtime.engines.protocol import StageItem, StageRequest, StageUsage
from tests.models.ar_engines import ar_file, loaded
from tests.models.media_requests import judged
from tests.models.thoughts import EDGE, chunks, said, shown, thought, whole

pytestmark = pytest.mark.asyncio(loop_scope="session")

ON = "talker->token2wav"
TALKS = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "max_tokens": 20}


REQUESTS = [
    said("hello world", "Chelsie"),
    said("hello world", "Ethan"),
    said("the quick brown fox", "Ethan"),
    *shown("Chelsie"),
]


@pytest.fixture(scope="module")
def tiny(tiny_checkpoint):
    return tiny_checkpoint("qwen2.5-omni")


@pytest.fixture(scope="module")
def reference(tiny, tmp_path_factory):
    return judged("ar_talker_reference.py", tiny, REQUESTS, tmp_path_factory.mktemp("judge"))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def thoughts(thinker_on_vllm):
    """What the thinker hands on for each request: its items, as another process would see them."""
    return await asyncio.gather(*(thought(thinker_on_vllm, request) for request in REQUESTS))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def talker(tiny):
    async with loaded(ar_file(tiny, "talker", family="qwen2.5-omni", max_in_flight=17, max_sequences=17)) as talker:
        yield talker


async def codes(talker, request: StageRequest) -> list[int]:
    made: list[int] = []
    async for event in talker.run(request):
        if isinstance(event, StageItem):
            array = event.payload["codes"]
            assert isinstance(array, Array) and array.dtype == "int32" and array.shape[0] == 1
            made += numpy.frombuffer(array.data, dtype=numpy.int32).tolist()
        else:
            assert isinstance(event, StageUsage)
    return made


def speech(items, voice, number=0, **parameters):
    return StageRequest(f"t{number}", {EDGE: whole(items)}, {**TALKS, "voice": voice, **parameters}, (ON,))


def streamed(stream, voice, number=0, **parameters):
    return StageRequest(f"t{number}", {}, {**TALKS, "voice": voice, **parameters}, (ON,), {EDGE: stream})


def wanted(reference, number: int) -> list[int]:
    tokens = reference[f"codes.{number}"].tolist()
    ends = [place for place, token in enumerate(tokens) if token in (123, 125)]
    return tokens[: ends[0]] if ends else tokens


async def test_codes_equal_those_of_transformers_alone_and_together(talker, thoughts, reference):
    assert [[token for item in items for token in item["token_ids"]] for items in thoughts] == [
        reference[f"text.{number}"].tolist() for number in range(len(REQUESTS))
    ]
    every = [wanted(reference, number) for number in range(len(REQUESTS))]
    voices = [request["voice"] for request in REQUESTS]
    alone = [await codes(talker, speech(*one)) for one in zip(thoughts, voices, strict=True)]
    together = await asyncio.gather(
        *(codes(talker, speech(*one, number)) for number, one in enumerate(zip(thoughts, voices, strict=True)))
    )
    assert alone == every
    assert together == every


@pytest.mark.parametrize("size", [1, 4, 100])
async def test_codes_are_the_same_however_the_thinkers_rows_come(talker, thoughts, reference, size):
    given = await codes(talker, streamed(chunks(thoughts[0], size), "Chelsie"))
    assert given == wanted(reference, 0)


async def test_a_talker_speaks_while_its_thinker_thinks_and_keeps_nobody_from_speaking(talker, thoughts, reference):
    """One thinker pauses in the middle of its answer: codes have come by then, and another request runs to its end."""
    paused, go_on = asyncio.Event(), asyncio.Event()

    async def halting() -> AsyncIterator[Chunk]:
        for place, item in enumerate(thoughts[0]):
            if place == 6:
                paused.set()
                await go_on.wait()
            yield Chunk((item,))
        yield Chunk((), is_last=True)

    heard_enough = asyncio.Event()

    async def listen() -> list[int]:
        made: list[int] = []
        async for event in talker.run(streamed(halting(), "Chelsie")):
            if isinstance(event, StageItem):
                made += numpy.frombuffer(event.payload["codes"].data, dtype=numpy.int32).tolist()
                if len(made) >= 5:
                    heard_enough.set()
        return made

    listening = asyncio.create_task(listen())
    await paused.wait()
    other = await codes(talker, speech(thoughts[2], "Ethan", 2))
    await heard_enough.wait()
    assert talker.heartbeat_age_s() < 60
    go_on.set()
    assert await listening == wanted(reference, 0)
    assert other == wanted(reference, 2)


async def test_a_seed_makes_the_same_codes_in_ten_runs_and_among_sixteen_neighbours(talker, thoughts):
    sampled = {"temperature": 0.9, "top_k": 40, "top_p": 0.8, "seed": 5}
    first = await codes(talker, speech(thoughts[0], "Chelsie", **sampled))
    for size in (1, 4, 100) * 3:
        assert await codes(talker, streamed(chunks(thoughts[0], size), "Chelsie", **sampled)) == first
    crowd = await asyncio.gather(
        codes(talker, streamed(chunks(thoughts[0], 1), "Chelsie", 1, **sampled)),
        *(codes(talker, speech(thoughts[2], "Ethan", number, **sampled)) for number in range(2, 18)),
    )
    assert crowd[0] == first
    assert crowd[1:] == [crowd[1]] * 16


@pytest.mark.case("runtime:C3")
async def test_a_thinker_that_breaks_off_ends_its_talker_alone(talker, thoughts, reference):
    async def broken() -> AsyncIterator[Chunk]:
        for item in thoughts[0][:4]:
            yield Chunk((item,))
        raise OmniError(ErrorCode.TRANSFER_FAILED, "the thinker is gone")

    beside = asyncio.create_task(codes(talker, speech(thoughts[2], "Ethan", 2)))
    with pytest.raises(OmniError, match="the thinker is gone"):
        await codes(talker, streamed(broken(), "Chelsie"))
    assert await beside == wanted(reference, 2)
    assert talker.unfinished == 0


async def test_a_voice_that_is_not_there_is_refused(talker, thoughts):
    with pytest.raises(OmniError, match="the voices are Chelsie, Ethan") as caught:
        await codes(talker, speech(thoughts[0], "Nobody"))
    assert (caught.value.code, caught.value.param) == (ErrorCode.INVALID_REQUEST, "voice")


async def test_closed_talkers_free_their_place(talker, thoughts, reference):
    """More than there are places for, each parked for ever on its thinker."""

    async def stuck() -> AsyncIterator[Chunk]:
        for item in thoughts[0][:3]:
            yield Chunk((item,))
        await asyncio.Event().wait()

    async def leave(number: int) -> None:
        async for _ in talker.run(streamed(stuck(), "Chelsie", number)):
            break

    for _ in range(3):
        await asyncio.gather(*(leave(number) for number in range(8)))
    async with asyncio.timeout(30):
        assert await codes(talker, speech(thoughts[0], "Chelsie")) == wanted(reference, 0)

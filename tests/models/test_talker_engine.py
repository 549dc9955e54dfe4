"""The talker on transformers' layers says the codes that `generate` says; the judge runs in a process of its own."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from omni_contract.api.v1alpha1 import ArEngine as ArBlock
from omni_contract.wire.chunk import Chunk
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Payload, Value
from omni_runtime.engines.ar_transformers import create
from omni_runtime.engines.protocol import StageItem, StageNothing, StageRequest, StageUsage
from omni_runtime.stepping.batching import BatchSettings
from omni_runtime.stepping.engine import StageLimits
from omni_runtime.stepping.resident import Loading
from omni_runtime.stepping.tensors import to_array
from omni_runtime.stepping.weights import HOST
from omni_runtime.talking.engine import TalkerEngine
from tests.models import sounds
from tests.models.sounds import EDGE, off, sound
from tests.support.judges import ask

SCRIPT = Path(__file__).parent / "talker_reference.py"
WORDS = "thinker->talker"
REQUESTS: list[dict[str, Any]] = [
    {"text": "hello world", "words": 6, "frames": 16, "seed": 0, "samples": False},
    {"text": "the quick brown fox", "words": 2, "frames": 9, "seed": 1, "samples": False},
    {"text": "hello world", "words": 6, "frames": 16, "seed": 5, "samples": True},
    {"text": "over the lazy dog", "words": 9, "frames": 30, "seed": 6, "samples": True},
]
GREEDY: dict[str, Value] = {"temperature": 0, "repetition_penalty": 1.05}


@dataclass(frozen=True)
class Answer:
    """What transformers' thinker, talker and token2wav made of a request."""

    request: dict[str, Any]
    prompt: Any
    words: Any
    embeddings: Any
    states: Any
    codes: Any
    sound: Any

    @property
    def items(self) -> list[Payload]:
        """As the thinker's stage makes them: the first with what the prompt was, each with what its step has read."""
        prompt = len(self.prompt)
        return self._items([prompt, *range(prompt + 1, len(self.states) + 1)])

    @property
    def hasty_items(self) -> list[Payload]:
        """Each with states of the step after it, too, and the last one with some that nobody should say."""
        prompt = len(self.prompt)
        last = numpy.ones_like(self.states[:1])
        hasty = replace(
            self, states=numpy.concatenate((self.states, last)), embeddings=numpy.concatenate((self.embeddings, last))
        )
        return hasty._items([*range(prompt + 1, len(self.states) + 1), len(self.states) + 1])

    def _items(self, ends: list[int]) -> list[Payload]:
        starts = [0, *ends[:-1]]
        items: list[dict[str, Value]] = [
            {
                "token_ids": [int(word)],
                "text": "",
                "hidden": {"0": array(self.embeddings[start:end]), "-1": array(self.states[start:end])},
            }
            for word, start, end in zip(self.words, starts, ends, strict=True)
        ]
        # When it ends by a limit, vLLM may say so in a step of its own.
        items.append({"token_ids": [], "text": "", "hidden": {}, "finish_reason": "length"})
        items[0]["prompt_token_ids"] = self.prompt.tolist()
        return list(items)

    def stage_request(self, per_chunk: int | str | None = None, **parameters: Value) -> StageRequest:
        """The items whole, or so many in a chunk, or the hasty ones."""
        own = {} if self.request["samples"] else GREEDY
        limits = {"seed": self.request["seed"], "max_tokens": self.request["frames"], "voice": "Ethan"}
        request = StageRequest("answer", {}, {**limits, **own, **parameters}, (EDGE,))
        if per_chunk is None:
            return replace(request, inputs={WORDS: Chunk(tuple(self.items), is_last=True).payload()})
        items = self.hasty_items if per_chunk == "hasty" else self.items
        return replace(request, streams={WORDS: in_chunks(items, per_chunk if isinstance(per_chunk, int) else 1)})


def array(rows: Any) -> Array:
    return to_array(torch.from_numpy(numpy.ascontiguousarray(rows)))


async def in_chunks(items: list[Payload], size: int) -> AsyncIterator[Chunk]:
    for start in range(0, len(items), size):
        yield Chunk(tuple(items[start : start + size]))
        await asyncio.sleep(0)
    yield Chunk((), is_last=True)


@pytest.fixture(scope="module")
def answers(tiny_checkpoint, tmp_path_factory) -> list[Answer]:
    out = tmp_path_factory.mktemp("answers") / "answers.npz"
    ask(SCRIPT, [tiny_checkpoint("qwen2.5-omni"), out], json.dumps(REQUESTS))
    names = ("prompt", "words", "embeddings", "states", "codes", "sound")
    with numpy.load(out) as made:
        return [
            Answer(request, *(made[f"{position}.{name}"] for name in names))
            for position, request in enumerate(REQUESTS)
        ]


def file_of(tiny_checkpoint: Any, **block: Any) -> Any:
    engine = ArBlock(backend="transformers", **block)
    return sounds.stage_file("qwen2.5-omni", tiny_checkpoint("qwen2.5-omni"), stage="talker", engine=engine)


@asynccontextmanager
async def loaded(tiny_checkpoint: Any) -> AsyncIterator[TalkerEngine]:
    engine = create(file_of(tiny_checkpoint))
    await engine.load(lambda line: None)
    try:
        yield engine
    finally:
        await engine.close()


async def said(engine: TalkerEngine, request: StageRequest) -> list[int]:
    codes = [event.payload["codes"] for event in [e async for e in engine.run(request)] if isinstance(event, StageItem)]
    return [int(numpy.frombuffer(code.data, dtype=numpy.int32)[0]) for code in codes if isinstance(code, Array)]


@pytest.mark.parametrize("per_chunk", [None, 1, 4, "hasty"], ids=["whole", "word by word", "in fours", "hasty"])
async def test_codes_are_those_of_generate_greedy_and_sampled_alone_and_among_others(
    tiny_checkpoint, answers, per_chunk
):
    async with loaded(tiny_checkpoint) as engine:
        codes = await asyncio.gather(*(said(engine, answer.stage_request(per_chunk)) for answer in answers))
    assert codes == [answer.codes.tolist() for answer in answers]
    assert len({tuple(each) for each in codes}) == len(answers)


async def test_words_become_the_sound_of_generate_through_talker_and_token2wav(tiny_checkpoint, answers):
    async with AsyncExitStack() as stack:
        talker = await stack.enter_async_context(loaded(tiny_checkpoint))
        file = sounds.stage_file("qwen2.5-omni", tiny_checkpoint("qwen2.5-omni"))
        token2wav = await stack.enter_async_context(sounds.loaded(file))
        answer = answers[0]
        items = [e.payload async for e in talker.run(answer.stage_request(1)) if isinstance(e, StageItem)]
        payload = Chunk(tuple(items), is_last=True).payload()
        heard = await sound(token2wav, StageRequest("answer", {EDGE: payload}, {"seed": 0, "voice": "Ethan"}, ("",)))
    assert off(heard, torch.from_numpy(answer.sound)) < 1e-5


async def test_the_talker_begins_before_the_thinker_has_ended(tiny_checkpoint, answers):
    async def endless() -> AsyncIterator[Chunk]:
        yield Chunk(tuple(answers[0].items[:4]))
        await asyncio.Event().wait()

    async with loaded(tiny_checkpoint) as engine:
        request = replace(answers[0].stage_request(), inputs={}, streams={WORDS: endless()})
        events = engine.run(request)
        first = [await anext(events) for _ in range(3)]
        assert all(isinstance(event, StageItem) for event in first)
        await events.aclose()
        assert engine._in_flight == 0


async def test_speeches_share_steps_and_one_that_waits_for_words_keeps_nobody_from_speaking(tiny_checkpoint, answers):
    async def endless() -> AsyncIterator[Chunk]:
        yield Chunk(tuple(answers[0].items[:4]))
        await asyncio.Event().wait()

    async def usage_of(engine: TalkerEngine, answer: Answer) -> StageUsage:
        [usage] = [event async for event in engine.run(answer.stage_request()) if isinstance(event, StageUsage)]
        return usage

    async with loaded(tiny_checkpoint) as engine:
        waiting = engine.run(replace(answers[0].stage_request(), inputs={}, streams={WORDS: endless()}))
        first = [await anext(waiting) for _ in range(3)]
        usages = await asyncio.gather(*(usage_of(engine, answer) for answer in answers for _ in range(2)))
        await waiting.aclose()
    assert len(first) == 3
    assert [usage.output_tokens for usage in usages] == [len(answer.codes) for answer in answers for _ in range(2)]
    assert all(usage.batch_size > 1 and usage.batch_id for usage in usages)


class Mute:
    """A talker whose first code ends each speech."""

    modules: Sequence[torch.nn.Module] = ()

    def test_turns(self) -> Iterator[object]:
        yield from ()

    def begin(self, parameters: Mapping[str, Value]) -> object:
        return object()

    def hear(self, speech: object, item: Payload) -> None: ...

    def heard_all(self, speech: object) -> None: ...

    def can_speak(self, speech: object) -> bool:
        return True

    def input_tokens(self, speech: object) -> int:
        return 0

    def speak(self, speech: object) -> Payload | None:
        return None


def mute() -> Loading[Mute]:
    yield "loading"
    return Mute()


@pytest.mark.case("runtime:S6")
async def test_a_speech_that_ends_before_its_first_frame_says_so_to_all_who_listen(answers):
    engine = TalkerEngine(StageLimits("talker", 4), BatchSettings(4, 0.0), mute, HOST)
    await engine.load(lambda line: None)
    request = replace(answers[0].stage_request(), outputs=("", EDGE))
    events = [event async for event in engine.run(request)]
    await engine.close()
    assert events[:-1] == [StageNothing(""), StageNothing(EDGE)]
    assert isinstance(events[-1], StageUsage) and events[-1].output_tokens == 0


async def test_usage_counts_the_codes(tiny_checkpoint, answers):
    async with loaded(tiny_checkpoint) as engine:
        events = [event async for event in engine.run(answers[0].stage_request())]
    usage = events[-1]
    assert isinstance(usage, StageUsage)
    assert usage.output_tokens == len(answers[0].codes) == len(events) - 1


async def test_a_thinker_without_states_and_a_voice_that_is_not_there_are_refused(tiny_checkpoint, answers):
    without = {name: value for name, value in answers[0].items[0].items() if name != "hidden"}
    async with loaded(tiny_checkpoint) as engine:
        request = replace(answers[0].stage_request(), inputs={WORDS: Chunk((without,), is_last=True).payload()})
        with pytest.raises(OmniError, match="set ar"):
            await said(engine, request)
        with pytest.raises(OmniError, match="there is no voice") as refused:
            await said(engine, answers[0].stage_request(voice="nobody"))
        assert refused.value.code is ErrorCode.INVALID_REQUEST
        assert await said(engine, answers[0].stage_request()) == answers[0].codes.tolist()


@pytest.mark.parametrize("level", [1, 2])
async def test_codes_after_waking_are_those_before(tiny_checkpoint, answers, level):
    async with loaded(tiny_checkpoint) as engine:
        assert await engine.sleep(level) > 100_000
        await engine.wake(lambda line: None)
        assert await said(engine, answers[0].stage_request()) == answers[0].codes.tolist()

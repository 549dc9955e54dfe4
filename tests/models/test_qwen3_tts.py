"""Qwen3-TTS says the codes and makes the sound of the qwen-tts package, which runs in an environment of its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
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
from omni_runtime.engines.protocol import StageItem, StageRequest, StageUsage
from omni_runtime.families.qwen3_tts.tiny import build
from omni_runtime.talking.engine import TalkerEngine
from tests.models import sounds
from tests.models.sounds import EDGE, off, sound
from tests.support.qwen_tts import Judged, judged

FAMILY = "qwen3-tts"
INAUDIBLE = 1e-5
"""A third of the smallest step of 16 bits: rounding of floats in another order."""
GREEDY: dict[str, Value] = {"temperature": 0, "subtalker_temperature": 0}
CUSTOM: list[dict[str, Any]] = [
    {"text": "hello world the quick brown fox", "speaker": "Vivian", "frames": 24, "seed": 0, "samples": False},
    {"text": "over the lazy dog", "speaker": "Eric", "language": "Chinese", "frames": 9, "seed": 1, "samples": False},
    {
        "text": "hello world",
        "speaker": "ryan",
        "language": "English",
        "instruct": "Describe the color",
        "frames": 30,
        "seed": 5,
        "samples": True,
    },
    {"text": "a", "speaker": "serena", "language": "Auto", "frames": 200, "seed": 6, "samples": True},
]
DESIGNED: list[dict[str, Any]] = [
    {"text": "hello world", "instruct": "a quick voice", "frames": 20, "seed": 2, "samples": False},
    {"text": "the dog", "instruct": "a brown voice", "language": "German", "frames": 20, "seed": 3, "samples": True},
]
OUR_WORDS = {"text": "input", "speaker": "voice", "instruct": "instructions", "language": "language"}


def payload_of(request: Mapping[str, Any], **changes: Value) -> Payload:
    task = "CustomVoice" if "speaker" in request else "VoiceDesign"
    fields = {ours: request[theirs] for theirs, ours in OUR_WORDS.items() if theirs in request}
    return {"task_type": task, **fields, **changes}


def stage_request(request: Mapping[str, Any], **changes: Value) -> StageRequest:
    parameters: dict[str, Value] = {"max_tokens": request["frames"], "seed": request["seed"]}
    chosen = parameters if request["samples"] else parameters | GREEDY
    return StageRequest(f"speech-{request['seed']}", {"": payload_of(request, **changes)}, chosen, (EDGE,))


@pytest.fixture(scope="module")
def designer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("designer")
    build(folder, 0, lambda line: None, kind="voice_design")
    return folder


@pytest.fixture(scope="module")
def custom(tiny_checkpoint: Any) -> list[Judged]:
    return judged(tiny_checkpoint(FAMILY), CUSTOM)


@asynccontextmanager
async def talking(folder: Path) -> AsyncIterator[TalkerEngine]:
    engine = create(sounds.stage_file(FAMILY, folder, stage="talker", engine=ArBlock(backend="transformers")))
    await engine.load(lambda line: None)
    try:
        yield engine
    finally:
        await engine.close()


async def items(engine: TalkerEngine, request: StageRequest) -> list[Payload]:
    return [event.payload async for event in engine.run(request) if isinstance(event, StageItem)]


async def said(engine: TalkerEngine, request: StageRequest) -> list[list[int]]:
    """Rows of a group each."""
    frames = [item["codes"] for item in await items(engine, request)]
    arrays = [numpy.frombuffer(frame.data, dtype=numpy.int32) for frame in frames if isinstance(frame, Array)]
    return numpy.stack(arrays, axis=1).tolist()


async def test_codes_are_those_of_the_package_greedy_and_sampled_alone_and_among_others(tiny_checkpoint, custom):
    async with talking(tiny_checkpoint(FAMILY)) as engine:
        alone = await said(engine, stage_request(CUSTOM[2]))
        among = await asyncio.gather(*(said(engine, stage_request(request)) for request in CUSTOM))
    assert among == [each.codes.tolist() for each in custom]
    assert alone == among[2]
    assert len({str(codes) for codes in among}) == len(CUSTOM)
    assert 2 < len(among[3][0]) < 200, "the last one ends by itself"


async def test_a_voice_is_designed_as_the_package_designs_it(designer):
    async with talking(designer) as engine:
        codes = [await said(engine, stage_request(request)) for request in DESIGNED]
    assert codes == [each.codes.tolist() for each in judged(designer, DESIGNED)]
    assert codes[0] != codes[1]


@pytest.mark.case("runtime:S13")
async def test_text_becomes_the_sound_of_the_package_through_talker_and_codec(tiny_checkpoint, custom):
    folder = tiny_checkpoint(FAMILY)
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(talking(folder))
        codec = await stack.enter_async_context(sounds.loaded(sounds.stage_file(FAMILY, folder)))
        made = Chunk(tuple(await items(engine, stage_request(CUSTOM[0]))), is_last=True).payload()
        heard = await sound(codec, StageRequest("speech", {EDGE: made}, {}, ("",)))
    assert off(heard, torch.from_numpy(custom[0].sound)) < INAUDIBLE
    assert heard.abs().max() > 0.1


@pytest.mark.case("runtime:A6")
async def test_usage_counts_the_text_and_the_frames(tiny_checkpoint):
    async with talking(tiny_checkpoint(FAMILY)) as engine:
        requests = [stage_request(CUSTOM[0], input=text) for text in ("hello", "hello hello hello")]
        usages = [[event async for event in engine.run(request)][-1] for request in requests]
    short, long = usages
    assert isinstance(short, StageUsage) and isinstance(long, StageUsage)
    assert short.output_tokens == long.output_tokens == CUSTOM[0]["frames"]
    assert 8 < short.input_tokens < long.input_tokens


WRONG: list[tuple[dict[str, Value], str, str]] = [
    ({"voice": "nobody"}, "voice", 'there is no voice "nobody"; the voices are aiden'),
    ({"language": "Latin"}, "language", 'does not speak "latin"'),
    ({"language": "beijing_dialect"}, "language", "does not speak"),
    ({"task_type": "Base"}, "task_type", 'does "CustomVoice", not "Base"'),
    ({"input": ""}, "input", "nothing to say"),
    ({"instructions": 3}, "instructions", "must be a text"),
]


@pytest.mark.parametrize(
    ("change", "param", "words"), WRONG, ids=[f"{row[1]} {list(row[0].values())}" for row in WRONG]
)
async def test_what_the_checkpoint_cannot_do_is_refused_by_name(tiny_checkpoint, change, param, words):
    async with talking(tiny_checkpoint(FAMILY)) as engine:
        with pytest.raises(OmniError, match=words) as refused:
            await said(engine, stage_request(CUSTOM[0], **change))
    assert (refused.value.code, refused.value.param) == (ErrorCode.INVALID_REQUEST, param)


@pytest.mark.parametrize(
    ("name", "value"), [("subtalker_temperature", -1), ("subtalker_top_p", 0), ("temperature", "hot"), ("top_k", 1.5)]
)
async def test_a_wrong_parameter_of_talker_or_predictor_is_refused_by_its_own_name(tiny_checkpoint, name, value):
    async with talking(tiny_checkpoint(FAMILY)) as engine:
        request = stage_request(CUSTOM[0])
        wrong = StageRequest("wrong", request.inputs, {**request.parameters, name: value}, (EDGE,))
        with pytest.raises(OmniError, match=f'"{name}" is') as refused:
            await said(engine, wrong)
    assert refused.value.param == name


@pytest.mark.parametrize("level", [1, 2])
async def test_codes_after_waking_are_those_before(tiny_checkpoint, custom, level):
    async with talking(tiny_checkpoint(FAMILY)) as engine:
        assert await engine.sleep(level) > 100_000
        await engine.wake(lambda line: None)
        assert await said(engine, stage_request(CUSTOM[0])) == custom[0].codes.tolist()

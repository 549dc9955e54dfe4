"""Qwen3-TTS says the codes and makes the sound of the qwen-tts package, which runs in an environment of its own."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from omni_contract.api.v1alpha1 import ArEngine as ArBlock
from omni_contract.wire.chunk import Chunk
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Payload, Value
from omni_runtime.engines.ar_transformers import create
from omni_runtime.engines.protocol import StageItem, StageRequest, StageUsage
from omni_runtime.families.qwen3_tts.order import Reference
from omni_runtime.families.qwen3_tts.tiny import build
from omni_runtime.stepping.tensors import to_array, to_tensor
from omni_runtime.stepping.weights import HOST
from omni_runtime.talking.engine import TalkerEngine
from omni_runtime.writing.resample import resampled
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
HUM, SHORT_HUM = 36_000, 12_000
CLONED: list[dict[str, Any]] = [
    {"text": "hello world", "x_vector_only_mode": True, "frames": 24, "seed": 0, "samples": False},
    {"text": "over the lazy dog", "ref_text": "hello world", "language": "English", "frames": 40, "seed": 1}
    | {"samples": False},
    {"text": "over the lazy dog " * 4, "ref_text": "hello", "hum": SHORT_HUM, "frames": 30, "seed": 5, "samples": True},
]
"""In the second the codes of what was heard are more than the words, in the third fewer."""
OUR_WORDS = {"text": "input", "speaker": "voice", "instruct": "instructions", "language": "language"}


def payload_of(request: Mapping[str, Any], **changes: Value) -> Payload:
    fields = {ours: request[theirs] for theirs, ours in OUR_WORDS.items() if theirs in request}
    if request in CLONED:
        fields |= {name: request[name] for name in ("ref_text", "x_vector_only_mode") if name in request}
        fields |= {"task_type": "Base", "ref_audio": to_array(hum(request)), "ref_sample_rate": 24_000}
    else:
        fields["task_type"] = "CustomVoice" if "speaker" in request else "VoiceDesign"
    return {**fields, **changes}


def hum(request: Mapping[str, Any]) -> torch.Tensor:
    """Somebody's voice: a tone that swells, in the noise of a room, in steps that JSON keeps."""
    times = torch.arange(request.get("hum", HUM)) / 24_000
    noise = torch.randn(len(times), generator=torch.Generator().manual_seed(3))
    tone = (2 * torch.pi * 220 * times).sin() * (1 + (2 * torch.pi * 3 * times).sin())
    return ((0.15 * tone + 0.05 * noise) * 8192).round() / 8192


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
def mimic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mimic")
    build(folder, 0, lambda line: None, kind="base")
    return folder


@pytest.fixture(scope="module")
def cloned(mimic: Path) -> list[Judged]:
    return judged(mimic, [{**one, "ref_audio": hum(one).tolist(), "sample_rate": 24_000} for one in CLONED])


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
    """Rows of a group each, without what only leads in."""
    rows: list[list[int]] = torch.cat([own_codes(item) for item in await items(engine, request)], dim=1).tolist()
    return rows


def own_codes(item: Payload) -> torch.Tensor:
    codes, lead_in = item["codes"], item.get("lead_in", 0)
    assert isinstance(codes, Array) and isinstance(lead_in, int)
    return to_tensor(codes, HOST)[:, lead_in:]


async def test_codes_are_those_of_the_package_greedy_and_sampled_alone_and_among_others(tiny_checkpoint, custom):
    async with talking(tiny_checkpoint(FAMILY)) as engine:
        alone = await said(engine, stage_request(CUSTOM[2]))
        among = await asyncio.gather(*(said(engine, stage_request(request)) for request in CUSTOM))
    assert among == [each.codes.tolist() for each in custom]
    assert alone == among[2]
    assert len({str(codes) for codes in among}) == len(CUSTOM)
    assert 2 < len(among[3][0]) < 200, "the last one ends by itself"


async def test_speeches_share_steps_and_are_those_of_the_package_however_they_meet(tiny_checkpoint, custom):
    async def late(engine: TalkerEngine, number: int) -> list[Payload | StageUsage]:
        """Each begins a little after the one before, so that those that share a step are of unlike lengths."""
        await asyncio.sleep(0.02 * number)
        events = [event async for event in engine.run(stage_request(CUSTOM[number % len(CUSTOM)]))]
        return [event.payload if isinstance(event, StageItem) else event for event in events]  # type: ignore[union-attr]

    async with talking(tiny_checkpoint(FAMILY)) as engine:
        answers = await asyncio.gather(*(late(engine, number) for number in range(2 * len(CUSTOM))))
    for number, (*payloads, usage) in enumerate(answers):
        codes = torch.cat([own_codes(payload) for payload in payloads], dim=1)
        assert codes.tolist() == custom[number % len(CUSTOM)].codes.tolist()
        assert isinstance(usage, StageUsage) and usage.batch_size > 1 and usage.batch_id


async def test_what_the_checkpoints_own_file_says_of_sampling_holds_where_nobody_says_otherwise(
    tiny_checkpoint, custom, tmp_path
):
    folder = shutil.copytree(tiny_checkpoint(FAMILY), tmp_path / "greedy")
    file = folder / "generation_config.json"
    said_there = {"do_sample": False, "subtalker_dosample": False, "max_new_tokens": CUSTOM[0]["frames"]}
    file.write_text(json.dumps(json.loads(file.read_text()) | said_there))
    async with talking(folder) as engine:
        assert await said(engine, StageRequest("plain", {"": payload_of(CUSTOM[0])}, {}, (EDGE,))) == (
            custom[0].codes.tolist()
        )
        warm = StageRequest("warm", {"": payload_of(CUSTOM[0])}, {"temperature": 1.0, "seed": 1}, (EDGE,))
        assert await said(engine, warm) != custom[0].codes.tolist()


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


async def test_a_voice_is_cloned_from_its_sound_or_with_its_words_as_the_package_clones_it(mimic, cloned):
    async with talking(mimic) as engine:
        codes = [await said(engine, stage_request(request)) for request in CLONED]
        last = [event async for event in engine.run(stage_request(CLONED[1]))][-1]
    assert codes == [each.codes.tolist() for each in cloned]
    assert isinstance(last, StageUsage) and last.output_tokens == CLONED[1]["frames"]


@pytest.mark.parametrize("size", [1, 7, 1000], ids=["frame by frame", "in sevens", "whole"])
async def test_what_was_heard_leads_into_a_clones_speech_and_is_not_said_again(mimic, cloned, size):
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(talking(mimic))
        codec = await stack.enter_async_context(sounds.loaded(sounds.stage_file(FAMILY, mimic)))
        made = await items(engine, stage_request(CLONED[1]))
        streamed = StageRequest("speech", {}, {}, ("",), streams={EDGE: in_chunks(made, size)})
        heard = await sound(codec, streamed)
        without = Chunk(tuple({"codes": to_array(own_codes(item))} for item in made), is_last=True).payload()
        begun_anew = await sound(codec, StageRequest("speech", {EDGE: without}, {}, ("",)))
    assert off(heard, torch.from_numpy(cloned[1].sound)) < INAUDIBLE
    assert off(heard, begun_anew) > 1000 * INAUDIBLE


async def in_chunks(made: list[Payload], size: int) -> AsyncIterator[Chunk]:
    for start in range(0, len(made), size):
        yield Chunk(tuple(made[start : start + size]))
    yield Chunk((), is_last=True)


async def test_a_reference_at_another_rate_is_nearly_the_same_voice(mimic):
    """The package resamples by another filter, so that no sample of theirs can be ours."""
    slow = hum(CLONED[0])[::2].contiguous()
    async with talking(mimic) as engine:
        talker = engine._model.ready
        assert talker is not None
        rows = [
            talker._cloner.timbre(Reference(to_array(sound), rate, None)).row
            for sound, rate in ((slow, 12_000), (resampled_to(slow, 24_000), 24_000), (hum(CLONED[0]).flip(0), 24_000))
        ]
    near, far = (torch.cosine_similarity(rows[0], row, dim=0) for row in rows[1:])
    assert near > 0.999 > far


def resampled_to(sound: torch.Tensor, rate: int) -> torch.Tensor:
    return torch.from_numpy(resampled(sound.numpy(), rate // 2, rate))


NOT_CLONED: list[tuple[dict[str, Value], str, str]] = [
    ({"ref_audio": to_array(torch.zeros(100))}, "ref_audio", "it lasts 0.00417 s"),
    ({"ref_audio": None}, "ref_audio", "must be the sound of the voice"),
    ({"ref_text": ""}, "ref_text", "say what is said in ref_audio"),
    ({"instructions": "a low voice"}, "instructions", "takes no instructions"),
    ({"task_type": "CustomVoice"}, "task_type", 'does "Base"'),
]


@pytest.mark.parametrize(("change", "param", "words"), NOT_CLONED, ids=[row[1] + row[2][-5:] for row in NOT_CLONED])
async def test_what_cannot_be_cloned_is_refused_by_name(mimic, change, param, words):
    async with talking(mimic) as engine:
        with pytest.raises(OmniError, match=words) as refused:
            await said(engine, stage_request(CLONED[1], **change))
    assert (refused.value.code, refused.value.param) == (ErrorCode.INVALID_REQUEST, param)


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

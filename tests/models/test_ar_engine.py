"""The ar engine on a tiny model, as the worker drives it: equal to transformers, alone and among neighbours.

Backend `transformers` keeps the protocol that vLLM does; `ON_VLLM` is what only the other one does.
"""

import asyncio
import gzip
import json
import multiprocessing
import tempfile
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio
import torch
from transformers import AutoTokenizer

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array
from omni_runtime.engines.protocol import (
    EngineDiedError,
    HasWeights,
    Profile,
    Profiles,
    ResetsCache,
    Sleeps,
    StageRequest,
    UnusableEngineError,
)
from omni_runtime.engines.registry import create_engine
from omni_runtime.families.registry import family
from omni_runtime.private_folder import LOCK
from tests.models import tiny_text
from tests.models.ar_engines import Answer, answer, ar_file, asked, chat, judged, loaded

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROMPTS = ([3, 5, 7, 11], [200, 201], list(range(40, 140)), [9], [300, 2, 300, 2, 300])
LENGTH = {"max_tokens": 24, "min_tokens": 24}
GREEDY = {"temperature": 0.0, **LENGTH}
AT_ONCE = 64
"""Tokens of a step: a prompt of more is computed in parts, and in others when neighbours want their share."""
SAMPLED = {"temperature": 1.0, "top_p": 0.95, "top_k": 40, "seed": 7, **LENGTH}
ON_VLLM = pytest.mark.parametrize("engine", ["vllm"], indirect=True)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny-text"
    tiny_text.build(folder)
    return folder


@pytest.fixture(scope="module")
def children():
    """The engine's processes, without those of other modules' engines."""
    others = multiprocessing.active_children()
    return lambda: [child for child in multiprocessing.active_children() if child not in others]


@pytest.fixture(scope="module")
def sockets():
    """Those of the engine's processes, and files beside them, without other engines'."""
    usual = tempfile.gettempdir()
    with tempfile.TemporaryDirectory(prefix="omni-test-") as folder:
        tempfile.tempdir = folder
        yield lambda: [path for path in Path(folder).glob("omni-vllm-*/*/*") if path.name != LOCK]
        tempfile.tempdir = usual


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["vllm", "transformers"])
async def engine(request, tiny, children, sockets):
    async with loaded(ar_file(tiny, backend=request.param, max_batched_tokens=AT_ONCE)) as engine:
        yield engine


@pytest.fixture(scope="module")
def tokenizer(tiny):
    return AutoTokenizer.from_pretrained(tiny)


def ids(prompt):
    return {"prompt_token_ids": list(prompt)}


@pytest.fixture(scope="module")
def reference(tiny):
    """What transformers makes of each prompt, and of the last one with a penalty."""
    requests = [{**ids(prompt), "max_new_tokens": 24, "min_new_tokens": 24} for prompt in PROMPTS]
    return judged(tiny, [*requests, {**requests[-1], "repetition_penalty": 1.5}])


async def test_greedy_tokens_equal_transformers_generate_alone_and_together(engine, reference):
    alone = [(await answer(engine, asked(ids(prompt), **GREEDY))).token_ids for prompt in PROMPTS]
    together = await asyncio.gather(*(answer(engine, asked(ids(prompt), **GREEDY)) for prompt in PROMPTS))
    assert alone == reference[:-1]
    assert [one.token_ids for one in together] == reference[:-1]


async def test_a_repetition_penalty_counts_as_in_transformers(engine, reference):
    given = await answer(engine, asked(ids(PROMPTS[-1]), **GREEDY, repetition_penalty=1.5))
    assert given.token_ids == reference[-1] != reference[-2]


@pytest.mark.case("runtime:B7")
async def test_a_seed_makes_the_same_tokens_in_ten_runs_and_among_sixteen_neighbours(engine):
    async def one(seed: int, prompt=PROMPTS[0]) -> list[int]:
        return (await answer(engine, asked(ids(prompt), **(SAMPLED | {"seed": seed})))).token_ids

    long = PROMPTS[2]
    assert len(long) > AT_ONCE
    alone = [await one(7) for _ in range(10)]
    alone_at_length = await one(7, long)
    crowd = await asyncio.gather(one(7), one(7, long), *(one(seed, PROMPTS[seed % 5]) for seed in range(100, 116)))
    other = await one(8)
    assert alone == [alone[0]] * 10
    assert crowd[:2] == [alone[0], alone_at_length]
    assert other != alone[0]


async def test_each_item_is_a_step_and_the_items_add_up(engine, tokenizer):
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hello world"}], add_generation_prompt=True, tokenize=False
    )
    given = await answer(engine, asked(chat("hello world"), **GREEDY))
    count = len(tokenizer(prompt).input_ids)
    assert given.items[0]["prompt_tokens"] == count
    assert all("prompt_tokens" not in item and "finish_reason" not in item for item in given.items[1:-1])
    assert given.finish_reason == "length"
    # A character that is not complete as the answer ends is left out.
    assert given.text == tokenizer.decode(given.token_ids, skip_special_tokens=True).rstrip("\ufffd")
    assert (given.usage.input_tokens, given.usage.output_tokens) == (count, 24)
    # Steps that its reader was late for come as one.
    assert 1 < len(given.items) == given.usage.steps <= 24


async def test_a_text_prompt_gives_what_its_tokens_give(engine, tokenizer):
    text = "the quick brown fox"
    by_text = await answer(engine, asked({"prompt": text}, **GREEDY))
    by_tokens = await answer(engine, asked(ids(tokenizer(text).input_ids), **GREEDY))
    assert by_text.token_ids == by_tokens.token_ids


async def test_tools_are_handed_to_the_chat_template(engine):
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    without = await answer(engine, asked(chat("hello"), **GREEDY))
    with_tools = await answer(engine, asked({**chat("hello"), "tools": [tool, tool]}, **GREEDY))
    assert with_tools.usage.input_tokens > without.usage.input_tokens


async def test_it_ends_at_a_stop_text_and_leaves_it_out(engine):
    whole = await answer(engine, asked(ids(PROMPTS[0]), **GREEDY))
    stop = whole.text[len(whole.text) // 2 :][:3]
    given = await answer(engine, asked(ids(PROMPTS[0]), temperature=0.0, max_tokens=24, stop=[stop]))
    assert (given.finish_reason, given.items[-1]["stop_reason"]) == ("stop", stop)
    assert given.text == whole.text[: whole.text.index(stop)]


async def test_it_ends_at_a_stop_token(engine):
    whole = await answer(engine, asked(ids(PROMPTS[0]), **GREEDY))
    stop = whole.token_ids[5]
    given = await answer(engine, asked(ids(PROMPTS[0]), temperature=0.0, max_tokens=24, stop_token_ids=[stop]))
    assert given.token_ids == whole.token_ids[: whole.token_ids.index(stop) + 1]
    assert (given.finish_reason, given.items[-1]["stop_reason"]) == ("stop", stop)


async def test_log_probabilities_come_for_each_token_the_likeliest_first(engine, tokenizer):
    given = await answer(engine, asked(ids(PROMPTS[0]), **GREEDY, logprobs=3))
    places = [place for item in given.items for place in item["logprobs"]]
    assert [place["token_id"] for place in places] == given.token_ids
    for place in places:
        assert [one["logprob"] for one in place["top"]] == sorted(
            (one["logprob"] for one in place["top"]), reverse=True
        )
        assert len(place["top"]) == 3
        assert place["top"][0]["token_id"] == place["token_id"]
    spelt = bytes(byte for place in places for byte in place["bytes"])
    assert spelt.decode(errors="replace") == tokenizer.decode(given.token_ids, skip_special_tokens=False)


async def test_no_log_probabilities_unless_asked_for(engine):
    given = await answer(engine, asked(ids(PROMPTS[0]), **GREEDY))
    assert not any("logprobs" in item for item in given.items)


async def test_parameters_of_the_stage_itself_win_and_those_of_others_do_not_count(engine):
    parameters = {**GREEDY, "min_tokens": 1, "writer.max_tokens": 3, "talker.max_tokens": 1}
    given = await answer(engine, asked(ids(PROMPTS[0]), **parameters))
    assert len(given.token_ids) == 3


WRONG = (
    ({"prompt_token_ids": [1]}, {"temperature": 3.0}, "temperature"),
    ({"prompt_token_ids": [1]}, {"top_p": 0}, "top_p"),
    ({"prompt_token_ids": [1]}, {"max_tokens": 0}, "max_tokens"),
    ({"prompt_token_ids": [1]}, {"max_tokens": 2, "min_tokens": 3}, "min_tokens"),
    ({"prompt_token_ids": [1]}, {"stop": [""]}, "stop"),
    ({"prompt_token_ids": [1]}, {"seed": "x"}, "seed"),
    ({"prompt_token_ids": [1]}, {"logprobs": 21}, "logprobs"),
    ({"prompt_token_ids": [100_000]}, {}, "prompt_token_ids"),
    ({"prompt_token_ids": [1] * 600}, {}, "prompt_token_ids"),
    ({"prompt_token_ids": []}, {}, "prompt_token_ids"),
    ({"prompt": "word " * 2000}, {}, "prompt"),
    ({"messages": []}, {}, "messages"),
    ({"messages": [{"role": "user", "content": [{"type": "smell"}]}]}, {}, "messages"),
    ({"nothing": 1}, {}, None),
)


async def test_a_wrong_request_fails_alone_and_says_which_field_is_wrong(engine):
    async def refused(payload, parameters) -> tuple[ErrorCode, str | None]:
        with pytest.raises(OmniError) as caught:
            await answer(engine, asked(payload, **parameters))
        assert len(caught.value.message) < 600
        return caught.value.code, caught.value.param

    alone = (await answer(engine, asked(ids(PROMPTS[1]), **SAMPLED))).token_ids
    beside = asyncio.create_task(answer(engine, asked(ids(PROMPTS[1]), **SAMPLED)))
    refusals = await asyncio.gather(*(refused(payload, parameters) for payload, parameters, _ in WRONG))
    assert refusals == [(ErrorCode.INVALID_REQUEST, param) for _, _, param in WRONG]
    assert (await beside).token_ids == alone


async def test_a_picture_for_a_model_that_reads_text_alone_is_refused(engine):
    picture = {"type": "image", "image": Array("uint8", (2, 2, 3), memoryview(bytes(12)))}
    with pytest.raises(OmniError, match="reads text alone") as caught:
        await answer(engine, asked({"messages": [{"role": "user", "content": [picture]}]}))
    assert caught.value.param == "messages"


async def test_an_adapter_that_is_not_there_is_not_found(engine):
    with pytest.raises(OmniError) as caught:
        await answer(engine, asked(ids([1]), lora="poet"))
    assert (caught.value.code, caught.value.param) == (ErrorCode.MODEL_NOT_FOUND, "lora")


@pytest.mark.case("runtime:C2")
async def test_closed_requests_leave_room_for_others(engine):
    """Three times as many as vLLM has slots: each is closed while it runs."""

    async def left_early(number: int) -> None:
        async with aclosing(engine.run(asked(ids(PROMPTS[number % 5]), max_tokens=400, ignore_eos=True))) as events:
            async for _ in events:
                return

    alone = (await answer(engine, asked(ids(PROMPTS[1]), **SAMPLED))).token_ids
    for _ in range(3):
        await asyncio.gather(*(left_early(number) for number in range(32)))
    async with asyncio.timeout(20):
        after = await answer(engine, asked(ids(PROMPTS[1]), **SAMPLED))
    assert after.token_ids == alone
    assert engine.heartbeat_age_s() == 0


@ON_VLLM
async def test_cancelling_a_reader_ends_its_request_within_a_few_steps(engine):
    """The engine counts what it makes; a request that nobody reads any more makes nothing."""
    seen = asyncio.Event()

    async def read() -> None:
        async for _ in engine.run(asked(ids(PROMPTS[2]), max_tokens=400, ignore_eos=True)):
            seen.set()

    task = asyncio.create_task(read())
    await seen.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert engine.unfinished == 0


async def test_what_another_stage_made_is_the_prompt(engine):
    first = await answer(engine, asked(ids(PROMPTS[0]), **GREEDY))
    payload = {"omni.items": first.items, "omni.context": 0, "omni.last": True}
    chained = await answer(engine, StageRequest("request-2", {"first->writer": payload}, GREEDY, ("",)))
    direct = await answer(engine, asked(ids(first.token_ids), **GREEDY))
    assert chained.token_ids == direct.token_ids


@ON_VLLM
async def test_no_process_was_started_to_look_at_the_model(engine):
    """One that vLLM knows by name alone it would have looked at in a process of its own."""
    from vllm import ModelRegistry

    assert engine.unfinished == 0
    assert issubclass(ModelRegistry.models["Qwen3ForCausalLM"].model_cls, torch.nn.Module)


@pytest.mark.parametrize(("field", "value"), [("quantization", "fp8"), ("extra_args", {"seed": 1})])
async def test_what_only_vllm_can_do_is_refused_by_name_on_transformers(tiny, field, value):
    with pytest.raises(UnusableEngineError, match=r"does not know ar\.(quantization|extraArgs)"):
        create_engine(ar_file(tiny, backend="transformers", **{field: value}))


async def test_a_model_of_several_parts_without_its_family_is_told_what_lacks(tmp_path):
    family("qwen2.5-omni").build_tiny(tmp_path / "omni", 0, lambda line: None)
    with pytest.raises(OmniError, match=r"name its family, and set ar\.part"):
        async with loaded(ar_file(tmp_path / "omni", backend="transformers")):
            pass


@ON_VLLM
async def test_the_cache_of_prefixes_is_forgotten_without_harm(engine):
    assert isinstance(engine, ResetsCache)
    before = await answer(engine, asked(ids(PROMPTS[2]), **GREEDY))
    assert await engine.reset_cache() == 1
    assert (await answer(engine, asked(ids(PROMPTS[2]), **GREEDY))).token_ids == before.token_ids


async def test_it_says_what_its_weights_take_and_how_many_requests_shared_its_steps(engine):
    assert isinstance(engine, HasWeights)
    assert engine.weights_bytes > 100_000
    usages = [each.usage for each in await asyncio.gather(*(answer(engine, asked(ids([9]), **GREEDY)) for _ in "abc"))]
    assert all(1 <= usage.batch_size <= 3 for usage in usages)


@ON_VLLM
async def test_requests_share_steps_and_what_is_made_of_their_tokens_is_told_apart(engine):
    usages = [each.usage for each in await asyncio.gather(*(answer(engine, asked(ids([9]), **GREEDY)) for _ in "abc"))]
    assert {usage.batch_size for usage in usages} == {3}
    assert all(0 < usage.postprocess_seconds < 1 for usage in usages)


@ON_VLLM
async def test_a_profile_ends_by_itself_or_when_it_is_stopped_and_holds_the_models_operators(engine, tmp_path):
    assert isinstance(engine, Profiles)
    assert await engine.stop_profile() is None
    # vLLM plans a step ahead, so that one of no use may follow the last.
    for trace, most, taken in ((tmp_path / "five.json.gz", 5, [5]), (tmp_path / "all.json.gz", 1000, [24, 25])):
        await engine.start_profile(trace, most)
        assert engine.is_profiling
        await answer(engine, asked(ids(PROMPTS[0]), **GREEDY))
        assert engine.is_profiling == (most not in taken)
        assert await engine.stop_profile() in [Profile(trace, steps) for steps in taken]
        assert not engine.is_profiling
        names = {event.get("name") for event in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]}
        assert "step" in names and any("linear" in str(name) or "mm" in str(name) for name in names)


@ON_VLLM
async def test_a_trace_that_cannot_be_written_fails_no_request_and_is_told(engine, tmp_path):
    await engine.start_profile(tmp_path / "missing" / "trace.json.gz", 1000)
    await answer(engine, asked(ids(PROMPTS[0]), **GREEDY))
    with pytest.raises(OSError, match="No such file"):
        await engine.stop_profile()


@ON_VLLM
async def test_asleep_it_holds_nothing_and_awake_it_answers_as_before(engine, children, sockets):
    assert isinstance(engine, Sleeps) and sockets()
    before: Answer = await answer(engine, asked(ids(PROMPTS[0]), **GREEDY))
    assert await engine.sleep(1) > 100_000
    assert not children() and not sockets() and engine.weights_bytes == 0
    lines: list[str] = []
    await engine.wake(lines.append)
    assert lines[-1] == "running a self-test" and engine.weights_bytes > 100_000
    assert (await answer(engine, asked(ids(PROMPTS[0]), **GREEDY))).token_ids == before.token_ids


@ON_VLLM
async def test_when_vllm_dies_every_request_learns_that_the_engine_did(engine, children):
    running = asyncio.create_task(answer(engine, asked(ids(PROMPTS[0]), max_tokens=400, ignore_eos=True)))
    await asyncio.sleep(0)
    for child in children():
        child.kill()
    with pytest.raises(EngineDiedError):
        await running
    with pytest.raises(EngineDiedError):
        await answer(engine, asked(ids(PROMPTS[0]), **GREEDY))

"""The thinker of a tiny Qwen2.5-Omni: pictures, sound and video in, tokens equal to transformers' own."""

import asyncio

import numpy
import pytest
import pytest_asyncio
from transformers import AutoTokenizer

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array
from omni_runtime.engines.protocol import StageItem, StageRequest
from tests.models.ar_engines import answer, ar_file, asked, loaded
from tests.models.media_requests import RATE, as_payload, judged, part, said

pytestmark = pytest.mark.asyncio(loop_scope="session")

GREEDY = {"temperature": 0.0, "max_tokens": 12, "min_tokens": 12}
REQUESTS = [
    said("hello world"),
    said(part("image", "picture"), "what is it?"),
    said(part("audio", "sound"), "and this?"),
    said("one", part("image", "wide"), "two", part("audio", "word"), part("image", "picture")),
    said(part("video", "video"), "what happens?"),
    said(part("video", "video", audio="sound"), "what happens?"),
]


@pytest.fixture(scope="module")
def tiny(tiny_checkpoint):
    return tiny_checkpoint("qwen2.5-omni")


@pytest.fixture(scope="module")
def reference(tiny, tmp_path_factory):
    return judged("ar_thinker_reference.py", tiny, REQUESTS, tmp_path_factory.mktemp("judge"))


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["vllm", "transformers"])
async def engine(request, tiny, thinker_on_vllm):
    if request.param == "vllm":
        yield thinker_on_vllm
        return
    file = ar_file(tiny, "thinker", "qwen2.5-omni", backend="transformers", hidden_layers=[0, 1, -1])
    async with loaded(file) as engine:
        yield engine


@pytest.mark.case("runtime:B4")
async def test_media_make_the_tokens_of_transformers_alone_and_together(engine, reference):
    wanted = [reference[f"tokens.{number}"].tolist() for number in range(len(REQUESTS))]
    alone = [await answer(engine, asked(as_payload(one), **GREEDY)) for one in REQUESTS]
    together = await asyncio.gather(*(answer(engine, asked(as_payload(one), **GREEDY)) for one in REQUESTS))
    assert [one.token_ids for one in alone] == wanted
    assert [one.token_ids for one in together] == wanted
    assert [one.usage.input_tokens for one in alone] == [
        len(reference[f"prompt.{number}"]) for number in range(len(REQUESTS))
    ]


async def test_media_beside_a_prompt_with_placeholders_make_the_tokens_of_the_chat(engine, tiny, reference):
    mixed = REQUESTS[3]
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    text = tokenizer.apply_chat_template(mixed, tokenize=False, add_generation_prompt=True)
    (message,) = as_payload(mixed)["messages"]
    beside = [one for one in message["content"] if one["type"] != "text"]
    made = await answer(engine, asked({"prompt": text, "media": beside}, **GREEDY))
    assert made.token_ids == reference["tokens.3"].tolist()


async def test_what_the_processor_is_told_holds_for_its_own_request(engine, reference):
    one_patch = {"mm_processor_kwargs": {"min_pixels": 28 * 28, "max_pixels": 28 * 28}}
    small, whole = await asyncio.gather(
        answer(engine, asked(as_payload(REQUESTS[1]) | one_patch, **GREEDY)),
        answer(engine, asked(as_payload(REQUESTS[1]), **GREEDY)),
    )
    assert whole.token_ids == reference["tokens.1"].tolist()
    # 56 x 56 pixels are four tokens, 28 x 28 are one.
    assert small.usage.input_tokens == whole.usage.input_tokens - 3


async def test_hidden_states_equal_those_of_transformers_row_by_row(engine, reference):
    """All at once, so that each step's rows have to be told apart."""

    async def states(number: int) -> dict[str, numpy.ndarray]:
        request = StageRequest(f"r{number}", {"": as_payload(REQUESTS[number])}, GREEDY, ("", "thinker->talker"))
        items = [event async for event in engine.run(request) if isinstance(event, StageItem)]
        told = [item.payload for item in items if item.edge]
        assert [item.payload["token_ids"] for item in items if not item.edge] == [item["token_ids"] for item in told]
        assert told[0]["prompt_token_ids"] == reference[f"prompt.{number}"].tolist()
        placed = reference[f"positions.{number}"].tolist()
        counted = [[place] * 3 for place in range(len(placed))]
        assert positions(told[0], otherwise=counted) == placed
        rows = {layer: [floats(item["hidden"][layer]) for item in told] for layer in told[0]["hidden"]}
        return {layer: numpy.concatenate(of_layer) for layer, of_layer in rows.items()}

    made = await asyncio.gather(*(states(number) for number in range(len(REQUESTS))))
    for number, of_request in enumerate(made):
        for layer, theirs in (("0", 0), ("1", 1), ("-1", 2)):
            wanted = reference[f"states.{theirs}.{number}"]
            assert of_request[layer].shape == wanted.shape
            assert numpy.abs(of_request[layer] - wanted).max() < 1e-4


async def test_a_request_for_text_alone_keeps_no_states(engine):
    given = await answer(engine, asked(as_payload(REQUESTS[0]), **GREEDY))
    assert all("hidden" not in item for item in given.items)


def positions(item, otherwise):
    array = item.get("prompt_positions")
    if array is None:
        return otherwise
    return numpy.frombuffer(array.data, dtype=numpy.int32).reshape(array.shape).tolist()


def floats(array: Array) -> numpy.ndarray:
    assert array.dtype == "float32"
    return numpy.frombuffer(array.data, dtype=numpy.float32).reshape(array.shape)


WRONG = (
    [{"type": "audio", "audio": Array("float32", (0,), memoryview(b"")), "sample_rate": RATE}],
    [{"type": "audio", "audio": Array("float32", (4,), memoryview(bytes(16))), "sample_rate": 0}],
    [{"type": "image", "image": Array("uint8", (2, 2), memoryview(bytes(4)))}],
    [{"type": "image", "image": Array("uint8", (1, 900, 3), memoryview(bytes(2700)))}],
    [{"type": "image", "image": "a picture"}],
    [{"type": "video", "frames": Array("uint8", (2, 28, 28, 3), memoryview(bytes(4704)))}],
    [{"type": "image", "image": Array("uint8", (28, 28, 3), memoryview(bytes(2352)))}] * 17,
)


async def test_wrong_media_fail_alone(engine):
    async def refused(parts) -> tuple[ErrorCode, str | None]:
        with pytest.raises(OmniError) as caught:
            await answer(engine, asked({"messages": [{"role": "user", "content": parts}]}, **GREEDY))
        return caught.value.code, caught.value.param

    alone = (await answer(engine, asked(as_payload(REQUESTS[1]), **GREEDY))).token_ids
    beside = asyncio.create_task(answer(engine, asked(as_payload(REQUESTS[1]), **GREEDY)))
    refusals = await asyncio.gather(*map(refused, WRONG))
    assert refusals == [(ErrorCode.INVALID_REQUEST, "messages")] * len(WRONG)
    assert (await beside).token_ids == alone


async def test_a_video_with_sound_is_one_prompt_of_both(engine):
    video = dict(as_payload(REQUESTS[4])["messages"][0]["content"][0])
    sound = as_payload(REQUESTS[2])["messages"][0]["content"][0]
    silent = await answer(engine, asked({"messages": [{"role": "user", "content": [video]}]}, **GREEDY))
    video |= {"audio": sound["audio"], "sample_rate": RATE}
    given = await answer(engine, asked({"messages": [{"role": "user", "content": [video]}]}, **GREEDY))
    assert given.usage.input_tokens > silent.usage.input_tokens
    with pytest.raises(OmniError, match="every video"):
        await answer(engine, asked({"messages": [{"role": "user", "content": [video, sound]}]}, **GREEDY))

"""POST /v1/images/generations as the official SDK uses it."""

import asyncio
import io
from base64 import b64decode
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types import ImagesResponse
from PIL import Image

from omni_contract.wire.names import REQUEST_ID_HEADER
from tests.support.fake_chain import MODEL, SIDE, STAGES
from tests.support.picture_client import expected


def opened(data: str | None) -> Image.Image:
    assert data
    return Image.open(io.BytesIO(b64decode(data)))


def colour(data: str | None) -> Any:
    return opened(data).convert("RGB").getpixel((0, 0))


def generate(openai: OpenAI, seed: int | None = None, **fields: Any) -> ImagesResponse:
    extra = {} if seed is None else {"seed": seed}
    return openai.images.generate(model=MODEL, prompt="a red fox", extra_body=extra, **fields)


@pytest.mark.case("runtime:A1")
def test_the_sdk_gets_as_many_images_as_it_asked_for_in_the_size_it_asked_for(openai: OpenAI) -> None:
    answer = generate(openai, n=3, size="96x64", response_format="b64_json")
    assert answer.data and [opened(image.b64_json).size for image in answer.data] == [(96, 64)] * 3
    assert (answer.size, answer.output_format, answer.background) == ("96x64", "png", "opaque")
    assert all(image.url is None and image.revised_prompt is None for image in answer.data)


@pytest.mark.parametrize("size", [None, "auto"])
def test_without_a_size_the_model_s_default_is_made_and_named(openai: OpenAI, size: str | None) -> None:
    assert generate(openai, size=size).size == f"{SIDE}x{SIDE}"


@pytest.mark.case("runtime:L19")
@pytest.mark.parametrize("count", range(1, 11))
def test_every_count_up_to_ten_is_answered(openai: OpenAI, count: int) -> None:
    answer = generate(openai, n=count)
    assert answer.data and len(answer.data) == count


@pytest.mark.case("runtime:B6")
def test_the_same_seed_gives_the_same_bytes(openai: OpenAI) -> None:
    one, other = (generate(openai, seed=7, size="64x64") for _ in range(2))
    assert one.data and other.data and one.data[0].b64_json == other.data[0].b64_json
    assert opened(one.data[0].b64_json).convert("RGB").tobytes() == expected(7)


@pytest.mark.case("runtime:B6")
def test_a_drawn_seed_is_reported_and_repeats_the_image(openai: OpenAI) -> None:
    raw = openai.images.with_raw_response.generate(model=MODEL, prompt="a red fox")
    drawn = raw.parse().data
    assert drawn and drawn[0].seed == int(raw.headers["x-omni-seed"])  # type: ignore[attr-defined]
    again = generate(openai, seed=int(raw.headers["x-omni-seed"])).data
    assert again and again[0].b64_json == drawn[0].b64_json


@pytest.mark.case("runtime:B8")
def test_image_i_equals_the_only_image_of_a_request_with_seed_plus_i(openai: OpenAI) -> None:
    batch = generate(openai, seed=100, n=4).data
    singles = [generate(openai, seed=100 + index).data for index in range(4)]
    assert batch and [image.b64_json for image in batch] == [one[0].b64_json for one in singles if one]
    assert len({image.b64_json for image in batch}) == 4


@pytest.mark.parametrize(("asked", "made"), [("png", "png"), ("jpeg", "jpeg"), ("jpg", "jpeg"), ("webp", "webp")])
def test_every_output_format_decodes_to_the_same_image(openai: OpenAI, asked: str, made: str) -> None:
    answer = generate(openai, seed=3, output_format=asked)
    assert answer.data and answer.output_format == made
    image = opened(answer.data[0].b64_json)
    assert (image.format or "").lower() == made
    near = zip(image.convert("RGB").getpixel((5, 5)), tuple(expected(3)[:3]), strict=True)  # type: ignore[arg-type]
    assert all(abs(one - other) <= 4 for one, other in near)


@pytest.mark.case("runtime:A31")
def test_usage_has_the_sdk_s_keys_and_adds_up(openai: OpenAI) -> None:
    usage = generate(openai, n=2).usage
    assert usage and usage.output_tokens_details
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.input_tokens == usage.input_tokens_details.text_tokens + usage.input_tokens_details.image_tokens


def test_hints_and_identifiers_of_the_sdk_are_taken_as_it_sends_them(openai: OpenAI) -> None:
    answer = generate(
        openai,
        background="auto",
        quality="hd",
        style="vivid",
        moderation="low",
        user="somebody",
        partial_images=0,
        stream=False,
    )
    assert (answer.quality, answer.safety_identifier) == ("high", "somebody")


@pytest.mark.case("runtime:A22")
def test_sampling_fields_of_one_request_do_not_stick_to_the_next(openai: OpenAI) -> None:
    assert generate(openai, size="32x16").size == "32x16"
    assert generate(openai).size == f"{SIDE}x{SIDE}"


@pytest.mark.case("runtime:K9")
def test_headers_name_the_request_and_the_replicas(openai: OpenAI) -> None:
    headers = {REQUEST_ID_HEADER: "from-the-client.1"}
    raw = openai.images.with_raw_response.generate(model=MODEL, prompt="a red fox", n=2, extra_headers=headers)
    assert raw.headers[REQUEST_ID_HEADER] == "from-the-client.1"
    assert raw.headers["x-omni-replicas"] == "; ".join(f"{stage}={stage}" for stage in STAGES)


def test_a_streamed_answer_ends_with_a_completed_event_for_each_image(openai: OpenAI) -> None:
    stream = openai.images.generate(
        model=MODEL, prompt="a red fox", n=2, size="64x64", stream=True, extra_body={"seed": 11}
    )
    events = list(stream)
    assert [event.type for event in events] == ["image_generation.completed"] * 2
    assert [opened(event.b64_json).convert("RGB").tobytes() for event in events] == [expected(11), expected(12)]
    assert all(event.size == "64x64" and event.quality == "auto" for event in events)


def test_streamed_usage_adds_up_to_the_unstreamed(openai: OpenAI) -> None:
    whole = generate(openai, n=2).usage
    events = list(openai.images.generate(model=MODEL, prompt="a red fox", n=2, stream=True))
    assert whole and sum(event.usage.total_tokens for event in events) == whole.total_tokens  # type: ignore[union-attr]


@pytest.mark.case("runtime:L20")
async def test_the_async_sdk_gets_many_concurrent_images_each_its_own(url: str) -> None:
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60) as openai:
        answers = await asyncio.gather(
            *(
                openai.images.generate(model=MODEL, prompt="fox", size="64x64", extra_body={"seed": seed})
                for seed in range(64)
            )
        )
    colours = [colour(answer.data[0].b64_json) for answer in answers if answer.data]
    assert colours == [tuple(expected(seed)[:3]) for seed in range(64)]


def test_a_prompt_in_any_script_is_taken(openai: OpenAI) -> None:
    assert openai.images.generate(model=MODEL, prompt="红狐 🦊 ثعلب").data

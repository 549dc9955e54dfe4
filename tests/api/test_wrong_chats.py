"""Whatever is wrong with a chat is refused before any stage sees it, with the field and a way out."""

import json
from typing import Any

import openai as sdk
import pytest
from httpx2 import Client
from openai import OpenAI

from tests.api.test_wrong_requests import error_of
from tests.support.chat_client import said
from tests.support.fake_omni import MODEL

PATH = "/v1/chat/completions"


def part(**fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [fields]}]}


def own(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"sampling_params_list": list(entries)}


CONTENT = "messages[0].content"
WRONG_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"messages": []}, "messages", "at least 1 item"),
    ({"messages": "hello"}, "messages", "valid list"),
    ({"messages": [{"content": "hello"}]}, "messages[0].role", "is required"),
    ({"messages": [{"role": "robot", "content": "hello"}]}, "messages[0].role", "'system', 'developer'"),
    ({"messages": [{"role": "user"}]}, CONTENT, "a message of role user needs one"),
    ({"messages": [{"role": "user", "content": []}]}, CONTENT, "needs one"),
    ({"messages": [{"role": "user", "content": 7}]}, CONTENT, "valid list, got 7"),
    ({"messages": [{"role": "user", "contents": "x"}]}, "messages[0].contents", 'did you mean "content"?'),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id", "messages of role tool have one"),
    ({"messages": said("x" * 32_001)}, "messages", "32001 characters are more than this model's limit of 32000"),
    (part(type="smell", text="x"), f"{CONTENT}[0].type", "'text', 'image_url'"),
    (part(type="text"), f"{CONTENT}[0].text", "text is missing"),
    (part(type="text", text="x", image_url={"url": "y"}), f"{CONTENT}[0].image_url", "does not belong there"),
    (part(type="image_url", image_url={}), f"{CONTENT}[0].image_url.url", "is required"),
    (part(type="image_url", image_url="http://x/y.png"), f"{CONTENT}[0].image_url", "valid dictionary"),
    (part(type="file", file={"file_id": "f"}), f"{CONTENT}[0].file", "parts of their own"),
    (
        part(type="input_audio", input_audio={"data": "AA==", "format": "midi"}),
        f"{CONTENT}[0].input_audio.format",
        "wav",
    ),
    ({"model": 7}, "model", "valid string"),
    ({"modalities": []}, "modalities", "at least 1 item"),
    ({"modalities": ["smell"]}, "modalities[0]", "'text', 'audio' or 'image'"),
    ({"audio": {"format": "midi"}}, "audio.format", "'wav', 'mp3'"),
    ({"audio": {"voice": "nobody"}}, "audio.voice", 'there is no voice "nobody"; use vivian, ryan'),
    ({"audio": {"voice": "ryan"}, "modalities": ["text"]}, "audio", 'it needs "audio" in modalities'),
    ({"temperature": -0.1}, "temperature", "greater than or equal to 0"),
    ({"temperature": 2.5}, "temperature", "less than or equal to 2"),
    ({"temperature": "hot"}, "temperature", 'valid number, got "hot"'),
    ({"top_p": 0}, "top_p", "greater than 0"),
    ({"top_k": 1.5}, "top_k", "valid integer"),
    ({"max_tokens": 0}, "max_tokens", "greater than or equal to 1"),
    ({"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens", "send one of them"),
    ({"min_tokens": 9, "max_tokens": 3}, "min_tokens", "9 are more than the most, 3"),
    ({"n": 0}, "n", "greater than or equal to 1"),
    ({"n": 17}, "n", "less than or equal to 16"),
    ({"stop": [""]}, "stop[0]", "at least 1 character"),
    ({"stop": ["a"] * 17}, "stop", "at most 16 items"),
    ({"seed": -1}, "seed", "greater than or equal to 0"),
    ({"logprobs": 3}, "logprobs", "valid boolean"),
    ({"top_logprobs": 3}, "top_logprobs", "it needs logprobs: true"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "less than or equal to 20"),
    ({"presence_penalty": 3}, "presence_penalty", "less than or equal to 2"),
    ({"stream_options": {"include_usage": True}}, "stream_options", "they need stream: true"),
    ({"stream": True, "stream_options": {"include_usages": True}}, "stream_options.include_usages", '"include_usage"?'),
    ({"tools": [{"type": "search"}]}, "tools[0].type", "'function'"),
    ({"tool_choice": "required"}, "tool_choice", "'none' or 'auto'"),
    ({"tool_choice": "auto"}, "tool_choice", "it needs tools"),
    ({"response_format": {"type": "json_object"}}, "response_format.type", "'text'"),
    ({"functions": []}, "functions", "not supported: use tools"),
    ({"logit_bias": {"5": 1}}, "logit_bias", "not supported"),
    ({"prompt_embeds": "AAAA"}, "prompt_embeds", "not supported: embeddings go from stage to stage only"),
    ({"temprature": 1}, "temprature", 'did you mean "temperature"?'),
    ({"extra_body": {"temprature": 1}}, "temprature", 'did you mean "temperature"?'),
    ({"seed": 1, "extra_body": {"seed": 2}}, "seed", "send one of them"),
    (own({}), "sampling_params_list", "one object for each stage (thinker, talker, vocoder), got 1"),
    (own({}, {"temprature": 1}, {}), "sampling_params_list[1].temprature", 'did you mean "temperature"?'),
    (own({"stop": {"a": 1}}, {}, {}), "sampling_params_list[0].stop", "a short list"),
    ({"lora": ""}, "lora", "at least 1 character"),
    ({"mm_processor_kwargs": 3}, "mm_processor_kwargs", "valid dictionary"),
]


@pytest.fixture(scope="module")
def http(talking_url: str) -> Client:
    return Client(base_url=talking_url, timeout=30, trust_env=False)


@pytest.mark.case("runtime:A10")
@pytest.mark.parametrize(("fields", "param", "words"), WRONG_FIELDS, ids=lambda value: str(value)[:40])
def test_a_wrong_field_is_refused_by_name(http: Client, fields: dict[str, Any], param: str, words: str) -> None:
    error = error_of(http.post(PATH, json={"model": MODEL, "messages": said(), **fields}), 400)
    assert (error["param"], error["code"], error["type"]) == (param, "invalid_request", "invalid_request_error")
    assert words in error["message"]


def nested(depth: int) -> Any:
    return {"a": nested(depth - 1)} if depth else 1


@pytest.mark.parametrize("field", ["mm_processor_kwargs", "tools"])
def test_what_is_nested_too_deep_to_travel_is_refused(http: Client, field: str) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": nested(40)}}
    body = {"messages": said(), field: nested(40) if field != "tools" else [tool]}
    error = error_of(http.post(PATH, json=body), 400)
    assert "deep" in error["message"] or "levels" in error["message"]


@pytest.mark.parametrize("depth", [200, 100_000])
def test_a_body_that_is_nested_without_end_is_refused(http: Client, depth: int) -> None:
    body = (
        '{"messages": [{"role": "user", "content": "x"}], "mm_processor_kwargs": '
        + '{"a":' * depth
        + "1"
        + "}" * (depth + 1)
    )
    error_of(http.post(PATH, content=body, headers=JSON), 400)


def test_a_streamed_request_that_is_wrong_has_its_status_too(http: Client) -> None:
    body = {"messages": said(), "stream": True, "audio": {"voice": "nobody"}}
    assert error_of(http.post(PATH, json=body), 400)["param"] == "audio.voice"


def test_another_model_is_not_found(talker: OpenAI) -> None:
    with pytest.raises(sdk.NotFoundError) as caught:
        talker.chat.completions.create(model="gpt-4o", messages=said())
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


@pytest.mark.case("runtime:A34")
def test_media_in_a_wrong_field_does_not_come_back(http: Client) -> None:
    media = "data:image/png;base64," + "iVBORw0KGgo" * 20_000
    for fields in ({"model": media}, part(type="image_url", image_url=media), {media: 1}, {"user": [media]}):
        answer = http.post(PATH, content=json.dumps({"messages": said(), **fields}), headers=JSON)
        assert answer.status_code in (400, 404)
        assert len(answer.content) < 600


JSON = {"content-type": "application/json"}

"""Whatever is wrong with a request is refused early, in one envelope, with the field and a way out."""

import json
from typing import Any

import openai as sdk
import pytest
from httpx2 import Client
from openai import OpenAI

from tests.support.fake_chain import MODEL

PATH = "/v1/images/generations"
LARGEST_ERROR_BYTES = 4096

WRONG_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"prompt": ""}, "prompt", "at least 1 character"),
    ({"prompt": "  \n"}, "prompt", "white space"),
    ({"prompt": 7}, "prompt", "valid string, got 7"),
    ({"prompt": "x" * 32_001}, "prompt", "32001 characters are more than this model's limit of 32000"),
    ({"prompt": "\ud800"}, "prompt", "unicode"),
    ({"n": 0}, "n", "greater than or equal to 1, got 0"),
    ({"n": 11}, "n", "less than or equal to 10, got 11"),
    ({"n": 1.5}, "n", "valid integer, got 1.5"),
    ({"n": "2"}, "n", 'valid integer, got "2"'),
    ({"n": True}, "n", "valid integer, got true"),
    ({"size": "big"}, "size", 'write "WIDTHxHEIGHT" in pixels, or "auto", got "big"'),
    ({"size": "0x64"}, "size", "WIDTHxHEIGHT"),
    ({"size": "64x-1"}, "size", "WIDTHxHEIGHT"),
    ({"size": "9999x9999"}, "size", "99980001 pixels are more than this model's limit of 4194304"),
    ({"response_format": "url"}, "response_format", 'needs storage, which is not set up; use "b64_json"'),
    ({"response_format": "png"}, "response_format", "'b64_json' or 'url'"),
    ({"output_format": "gif"}, "output_format", "'png', 'jpeg', 'jpg' or 'webp'"),
    ({"output_compression": 101, "output_format": "webp"}, "output_compression", "less than or equal to 100"),
    ({"output_compression": 50}, "output_compression", "use output_format jpeg or webp"),
    ({"background": "transparent"}, "background", 'use "opaque" or "auto"'),
    ({"quality": "best"}, "quality", "'low'"),
    ({"partial_images": 2, "stream": True}, "partial_images", "use 0"),
    ({"stream": "yes"}, "stream", "valid boolean"),
    ({"seed": -1}, "seed", "greater than or equal to 0"),
    ({"seed": 2**63}, "seed", "less than or equal to"),
    ({"steps": 0}, "steps", "greater than or equal to 1"),
    ({"steps": 201}, "steps", "201 steps are more than this model's limit of 200"),
    ({"num_inference_steps": 201}, "num_inference_steps", "limit of 200"),
    ({"steps": 4, "num_inference_steps": 5}, "steps", "send one of them"),
    ({"guidance_scale": -0.5}, "guidance_scale", "greater than or equal to 0"),
    ({"guidance_scale": 1.0, "true_cfg_scale": 4.0}, "true_cfg_scale", "send one of them"),
    ({"negative_prompt": ["blurry"]}, "negative_prompt", "valid string"),
    ({"frame_count": 4}, "frame_count", "not supported: it needs output_format gif"),
    ({"sede": 1}, "sede", 'did you mean "seed"?'),
    ({"guidence_scale": 1.0}, "guidence_scale", 'did you mean "guidance_scale"?'),
    ({"extra_body": {"seed": 1}}, "extra_body", "unknown field"),
    ({"lora": {"name": "style"}}, "lora", "unknown field"),
    ({"vae_use_slicing": True}, "vae_use_slicing", "unknown field"),
    ({"vae_use_tiling": True}, "vae_use_tiling", "unknown field"),
]


@pytest.fixture(scope="module")
def http(url: str) -> Client:
    return Client(base_url=url, timeout=30, trust_env=False)


def error_of(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert len(response.content) <= LARGEST_ERROR_BYTES
    assert response.headers["x-request-id"]
    body = response.json()
    assert body.keys() == {"error"} and body["error"].keys() == {"message", "type", "param", "code"}
    error: dict[str, Any] = body["error"]
    return error


@pytest.mark.case("runtime:A10", "runtime:A23", "runtime:K3", "runtime:L26")
@pytest.mark.parametrize(("fields", "param", "words"), WRONG_FIELDS, ids=lambda value: str(value)[:40])
def test_a_wrong_field_is_refused_by_name(http: Client, fields: dict[str, Any], param: str, words: str) -> None:
    body = json.dumps({"model": MODEL, "prompt": "a fox", **fields})
    error = error_of(http.post(PATH, content=body, headers={"content-type": "application/json"}), 400)
    assert (error["param"], error["code"], error["type"]) == (param, "invalid_request", "invalid_request_error")
    assert words in error["message"]


def test_the_sdk_raises_bad_request_with_the_field(openai: OpenAI) -> None:
    with pytest.raises(sdk.BadRequestError) as caught:
        openai.images.generate(model=MODEL, prompt="a fox", n=11)
    assert (caught.value.param, caught.value.code) == ("n", "invalid_request")


def test_the_sdk_raises_not_found_for_an_unknown_model(openai: OpenAI) -> None:
    with pytest.raises(sdk.NotFoundError, match=MODEL) as caught:
        openai.images.generate(model="dall-e-3", prompt="a fox")
    assert (caught.value.param, caught.value.code) == ("model", "model_not_found")
    with pytest.raises(sdk.NotFoundError):
        openai.models.retrieve("no/such-model")


def test_a_stream_that_cannot_begin_has_its_status(openai: OpenAI) -> None:
    with pytest.raises(sdk.BadRequestError):
        openai.images.generate(model=MODEL, prompt="a fox", stream=True, size="nope")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "the body is not valid JSON"),
        (b'{"prompt": "a" "n": 1}', "at character 15"),
        (b"", "must be a JSON object"),
        (b"[]", "must be a JSON object"),
        (b'"prompt"', "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'{"prompt": "\xff"}', "pars"),
        (b"[" * 100_000, "pars"),
    ],
)
def test_a_body_that_is_no_object_is_refused(http: Client, body: bytes, words: str) -> None:
    error = error_of(http.post(PATH, content=body, headers={"content-type": "application/json"}), 400)
    assert words in error["message"]


def test_a_missing_prompt_is_named(http: Client) -> None:
    error = error_of(http.post(PATH, json={"model": MODEL}), 400)
    assert (error["param"], error["message"]) == ("prompt", "prompt is required")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(http: Client, number: str) -> None:
    body = f'{{"prompt": "a fox", "guidance_scale": {number}}}'
    error = error_of(http.post(PATH, content=body, headers={"content-type": "application/json"}), 400)
    assert error["param"] == "guidance_scale"


@pytest.mark.parametrize("content_type", [None, "text/plain", "multipart/form-data; boundary=x"])
def test_another_content_type_is_refused(http: Client, content_type: str | None) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    error = error_of(http.post(PATH, content=json.dumps({"prompt": "a fox"}).encode(), headers=headers), 415)
    assert "application/json" in error["message"]


@pytest.mark.case("runtime:A34")
def test_media_in_a_wrong_field_does_not_come_back(http: Client) -> None:
    media = "iVBORw0KGgo" * 20_000
    error = error_of(http.post(PATH, json={"prompt": "a fox", "size": media}), 400)
    assert len(error["message"]) < 200
    error = error_of(http.post(PATH, json={"prompt": "a fox", media: 1}), 400)
    assert len(error["message"]) < 200


def test_a_body_over_the_limit_is_refused_whether_or_not_it_says_its_length(http: Client) -> None:
    big = json.dumps({"prompt": "x" * (1 << 20)}).encode()
    headers = {"content-type": "application/json"}
    assert error_of(http.post(PATH, content=big, headers=headers), 413)["code"] == "payload_too_large"
    chunks = (big[start : start + 65536] for start in range(0, len(big), 65536))
    assert error_of(http.post(PATH, content=chunks, headers=headers), 413)["code"] == "payload_too_large"


def test_unknown_routes_and_methods_have_the_same_envelope(http: Client) -> None:
    assert error_of(http.get("/v1/nothing"), 404)["code"] == "not_found"
    refused = http.get(PATH)
    assert error_of(refused, 405)["code"] == "method_not_allowed"
    assert refused.headers["allow"] == "POST"


@pytest.mark.parametrize("request_id", ["with space", "x" * 129, "tab\there"])
def test_a_request_id_that_cannot_stand_in_a_log_line_is_replaced(http: Client, request_id: str) -> None:
    answer = http.get("/v1/models", headers={"x-request-id": request_id})
    assert answer.status_code == 200
    assert answer.headers["x-request-id"].startswith("req-")

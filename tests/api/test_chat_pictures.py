"""POST /v1/chat/completions of a model that paints."""

from typing import Any

import pytest
from httpx2 import Client
from openai import OpenAI

from tests.api.test_wrong_requests import error_of
from tests.support.fake_chain import MODEL, SIDE
from tests.support.fake_omni import MODEL as CHATTER
from tests.support.media_files import data_url, image_file
from tests.support.picture_client import expected, rgb_of_url

FOX: Any = [{"role": "user", "content": "a red fox"}]
PATH = "/v1/chat/completions"

WRONG_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"messages": [{"role": "user", "content": " "}]}, "messages", "what to paint"),
    ({"modalities": ["text"]}, "modalities", "answers with pictures"),
    ({"stream": True}, "stream", "pictures come whole"),
    ({"width": 64}, "height", "come together"),
    ({"height": 64}, "width", "come together"),
    ({"width": 9999, "height": 9999}, "width", "more than this model's limit of 4194304"),
    ({"num_inference_steps": 201}, "num_inference_steps", "limit of 200"),
    ({"n": 3, "num_outputs_per_prompt": 4}, "num_outputs_per_prompt", "at most 10"),
    ({"guidance_scale": 1.0, "true_cfg_scale": 2.0}, "true_cfg_scale", "send one of them"),
    ({"temperature": 0}, "temperature", "makes no use of it"),
    ({"max_completion_tokens": 5}, "max_completion_tokens", "makes no use of it"),
    ({"audio": {"format": "wav"}}, "audio", "makes no use of it"),
    ({"guidance": 1}, "guidance", 'did you mean "guidance_scale"?'),
]


def pictures(answer: Any) -> list[list[bytes]]:
    """RGB bytes of each picture of each choice."""
    contents = [choice.message.content for choice in answer.choices]
    return [[rgb_of_url(part["image_url"]["url"]) for part in content] for content in contents]


@pytest.mark.case("runtime:A12")
def test_what_is_asked_for_in_words_comes_as_a_picture_in_the_content(openai: OpenAI) -> None:
    answer = openai.chat.completions.create(model=MODEL, messages=FOX, seed=7)
    assert pictures(answer) == [[expected(7)]]
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage and answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


@pytest.mark.parametrize("nested", [False, True])
def test_parameters_of_diffusion_are_taken_beside_the_others_and_inside_extra_body(url: str, nested: bool) -> None:
    own = {"height": SIDE, "width": SIDE, "num_inference_steps": 4, "seed": 3, "negative_prompt": "blurry"}
    own |= {"guidance_scale": 4.0, "num_outputs_per_prompt": 2}
    with Client(base_url=url, trust_env=False, timeout=30) as http:
        answer = http.post(PATH, json={"messages": FOX, **({"extra_body": own} if nested else own)}).json()
    [choice] = answer["choices"]
    made = [rgb_of_url(part["image_url"]["url"]) for part in choice["message"]["content"]]
    assert made == [expected(3), expected(4)]
    assert answer["seed"] == 3


def test_each_choice_has_pictures_of_its_own(openai: OpenAI) -> None:
    answer = openai.chat.completions.create(model=MODEL, messages=FOX, seed=7, n=3, modalities=["image"])  # type: ignore
    assert pictures(answer) == [[expected(7)], [expected(8)], [expected(9)]]


@pytest.mark.parametrize(("fields", "param", "words"), WRONG_FIELDS, ids=lambda value: str(value)[:40])
def test_what_a_painter_cannot_do_is_refused_by_name(url: str, fields: dict[str, Any], param: str, words: str) -> None:
    with Client(base_url=url, trust_env=False, timeout=30) as http:
        error = error_of(http.post(PATH, json={"messages": FOX, **fields}), 400)
    assert error["param"] == param and words in error["message"]


def test_a_picture_to_start_from_is_refused_where_the_model_paints_from_words(url: str) -> None:
    part = {"type": "image_url", "image_url": {"url": data_url(image_file())}}
    with Client(base_url=url, trust_env=False, timeout=30) as http:
        error = error_of(http.post(PATH, json={"messages": [{"role": "user", "content": [part]}]}), 400)
    assert error["param"] == "messages[0].content[0]" and "from words alone" in error["message"]


def test_a_model_that_talks_refuses_what_only_painters_use(talking_url: str) -> None:
    with Client(base_url=talking_url, trust_env=False, timeout=30) as http:
        error = error_of(http.post(PATH, json={"model": CHATTER, "messages": FOX, "width": 64, "height": 64}), 400)
        assert error["param"] == "height" and "only models that paint" in error["message"]
        error = error_of(http.post(PATH, json={"messages": FOX, "modalities": ["image"]}), 400)
        assert error["param"] == "modalities" and "makes no image, only text and audio" in error["message"]

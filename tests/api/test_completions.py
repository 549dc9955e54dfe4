"""POST /v1/completions as the official SDK uses it, and what it refuses."""

from typing import Any

import openai as sdk
import pytest
from httpx2 import Client
from openai import AsyncOpenAI, OpenAI

from tests.api.test_wrong_requests import error_of
from tests.support.chat_client import WORDS, expected_text
from tests.support.fake_chain import MODEL as PAINTER
from tests.support.fake_omni import MODEL, STEPS, THINKER

PATH = "/v1/completions"

WRONG_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"prompt": ""}, "prompt", "send a text, a list of token ids, or 1 to 64 of one of them"),
    ({"prompt": []}, "prompt", "send a text"),
    ({"prompt": [""]}, "prompt", "send a text"),
    ({"prompt": [-1]}, "prompt", "send a text"),
    ({"prompt": [True]}, "prompt", "send a text"),
    ({"prompt": ["a", [1]]}, "prompt", "either texts or token ids"),
    ({"prompt": ["a"] * 65}, "prompt", "1 to 64"),
    ({"prompt": {"text": "a"}}, "prompt", "send a text"),
    ({"prompt": "x" * 32_001}, "prompt", "32001 characters are more than this model's limit of 32000"),
    ({"prompt": [1] * 32_001}, "prompt", "32001 tokens are more than this model's limit of 32000"),
    ({"prompt": ["a"] * 9, "n": 8}, "n", "8 for each of 9 prompts are more than 64"),
    ({"n": 17}, "n", "less than or equal to 16"),
    ({"max_tokens": 0}, "max_tokens", "greater than or equal to 1"),
    ({"temperature": 3}, "temperature", "less than or equal to 2"),
    ({"logprobs": 21}, "logprobs", "less than or equal to 20"),
    ({"logprobs": True}, "logprobs", "valid integer"),
    ({"echo": True}, "echo", "False"),
    ({"best_of": 2}, "best_of", "not supported: use n"),
    ({"suffix": "x"}, "suffix", "not supported"),
    ({"stream_options": {}}, "stream_options", "they need stream: true"),
    ({"sampling_params_list": []}, "sampling_params_list", "one object for each stage"),
    ({"promt": "x"}, "promt", 'did you mean "prompt"?'),
]


def ask(talker: OpenAI, prompt: Any = WORDS, **fields: Any) -> Any:
    return talker.completions.create(**{"model": MODEL, "prompt": prompt, "seed": 0, **fields})


def test_a_prompt_is_gone_on_from_by_the_text_stage_alone(talker: OpenAI) -> None:
    raw = talker.completions.with_raw_response.create(model=MODEL, prompt=WORDS, seed=0)
    answer = raw.parse()
    assert raw.headers["x-omni-replicas"] == f"{THINKER}={THINKER}"
    [choice] = answer.choices
    assert (choice.text, choice.finish_reason, choice.index) == (expected_text(), "stop", 0)
    assert answer.usage and (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (4, STEPS)


def test_token_ids_are_a_prompt_too(talker: OpenAI) -> None:
    assert ask(talker, [5, 6, 7], max_tokens=4).choices[0].text == "5 6 7 5 "


@pytest.mark.parametrize("stream", [False, True])
def test_several_prompts_with_several_choices_each_are_answered_in_order(talker: OpenAI, stream: bool) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    answer = ask(talker, ["a b", "c d"], n=2, max_tokens=3, **options)
    texts, usage = {index: "" for index in range(4)}, None
    for part in answer if stream else [answer]:
        usage = part.usage or usage
        for choice in part.choices:
            texts[choice.index] += choice.text
    assert [*texts.values()] == ["a b a ", "b a b ", "c d c ", "d c d "]
    assert usage and (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (4, 12, 16)


def test_a_stream_adds_text_and_says_at_last_why_it_ends(talker: OpenAI) -> None:
    *during, last = list(ask(talker, stream=True, max_tokens=5))
    assert "".join(part.choices[0].text for part in during) == expected_text(tokens=5)
    assert all(part.choices[0].finish_reason is None for part in during) and len(during) == 5
    assert last.choices[0].finish_reason == "length"


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_say_where_each_token_stands(talker: OpenAI, stream: bool) -> None:
    answer = ask(talker, logprobs=2, max_tokens=3, stream=stream)
    logprobs = [choice.logprobs for part in (answer if stream else [answer]) for choice in part.choices]
    kept = [each for each in logprobs if each is not None]
    assert [token for each in kept for token in each.tokens] == ["the ", "quick ", "brown "]
    assert [offset for each in kept for offset in each.text_offset] == [0, 4, 10]
    assert all(len(top) == 2 for each in kept for top in each.top_logprobs)


def test_stop_texts_end_a_completion(talker: OpenAI) -> None:
    choice = ask(talker, stop="brown").choices[0]
    assert (choice.text, choice.finish_reason, choice.stop_reason) == ("the quick ", "stop", "brown")


async def test_the_async_sdk_streams(talking_url: str) -> None:
    async with AsyncOpenAI(base_url=f"{talking_url}/v1", api_key="none", max_retries=0) as openai:
        stream = await openai.completions.create(model=MODEL, prompt=WORDS, seed=0, stream=True)
        assert "".join([part.choices[0].text async for part in stream]) == expected_text()


@pytest.mark.case("runtime:A10")
@pytest.mark.parametrize(("fields", "param", "words"), WRONG_FIELDS, ids=lambda value: str(value)[:40])
def test_a_wrong_field_is_refused_by_name(talking_url: str, fields: dict[str, Any], param: str, words: str) -> None:
    with Client(base_url=talking_url, timeout=30, trust_env=False) as http:
        error = error_of(http.post(PATH, json={"prompt": "hello", **fields}), 400)
    assert (error["param"], error["code"]) == (param, "invalid_request")
    assert words in error["message"]


def test_a_model_without_text_says_so(openai: OpenAI) -> None:
    with pytest.raises(sdk.BadRequestError, match="makes no text, only image"):
        openai.completions.create(model=PAINTER, prompt="hello")

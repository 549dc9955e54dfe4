"""POST /v1/chat/completions as the official SDK uses it."""

import asyncio
import base64
import json
from typing import Any

import pytest
from httpx2 import Client
from openai import AsyncOpenAI, OpenAI

from tests.support.chat_client import (
    EXPECTED_SECONDS,
    WAV_HEADER_BYTES,
    WORDS,
    Heard,
    expected_pcm,
    expected_text,
    heard,
    said,
    take,
)
from tests.support.fake_omni import MODEL, STAGES, STEPS

TEXT_ONLY: dict[str, Any] = {"modalities": ["text"]}


def ask(talker: OpenAI, **fields: Any) -> Any:
    return talker.chat.completions.create(**{"model": MODEL, "messages": said(), "seed": 0, **fields})


@pytest.mark.case("runtime:A8")
def test_one_choice_has_the_text_and_the_audio_together(talker: OpenAI) -> None:
    answer = ask(talker)
    [choice] = answer.choices
    assert (choice.index, choice.finish_reason) == (0, "stop")
    assert choice.message.content == choice.message.audio.transcript == expected_text()
    assert base64.b64decode(choice.message.audio.data)[WAV_HEADER_BYTES:] == expected_pcm()
    assert choice.message.audio.id.startswith("audio_") and choice.message.audio.expires_at == answer.created


def test_without_audio_among_the_modalities_only_text_is_made(talker: OpenAI) -> None:
    answer = talker.chat.completions.with_raw_response.create(model=MODEL, messages=said(), modalities=["text"], seed=0)
    assert answer.headers["x-omni-replicas"] == "thinker=thinker"
    [choice] = answer.parse().choices
    assert choice.message.content == expected_text()
    assert choice.message.audio is None


def test_with_audio_alone_what_is_said_is_its_transcript(talker: OpenAI) -> None:
    message = ask(talker, modalities=["audio"]).choices[0].message
    assert message.content is None
    assert message.audio.transcript == expected_text()


@pytest.mark.case("runtime:A9")
def test_a_stream_gives_text_audio_and_transcript_in_deltas(talker: OpenAI) -> None:
    whole = heard(ask(talker, stream=True, audio={"voice": "ryan", "format": "pcm16"}))
    assert whole.text == whole.transcript == {0: expected_text()}
    assert whole.audio == {0: expected_pcm()}
    assert len(whole.audio_ids) == 1
    assert whole.kinds.index("audio") < len(whole.kinds) - 1 - whole.kinds[::-1].index("text"), "audio is not last"
    assert (whole.kinds[-1], whole.ends) == ("end", {0: "stop"})


@pytest.mark.case("runtime:S8")
def test_streamed_audio_is_one_file_and_equals_the_unstreamed(talker: OpenAI) -> None:
    streamed = heard(ask(talker, stream=True)).audio[0]
    whole = base64.b64decode(ask(talker).choices[0].message.audio.data)
    assert streamed[:4] == whole[:4] == b"RIFF"
    assert streamed[4:8] == b"\xff\xff\xff\xff" and whole[4:8] == (len(whole) - 8).to_bytes(4, "little")
    assert streamed[WAV_HEADER_BYTES:] == whole[WAV_HEADER_BYTES:]


def test_usage_counts_text_audio_and_seconds_and_is_the_same_streamed(talker: OpenAI) -> None:
    usage = ask(talker).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (4, 2 * STEPS, 4 + 2 * STEPS)
    details = usage.completion_tokens_details
    assert (details.text_tokens, details.audio_tokens, details.audio_seconds) == (STEPS, STEPS, EXPECTED_SECONDS)
    streamed = heard(ask(talker, stream=True, stream_options={"include_usage": True})).usage
    assert streamed == usage


def test_usage_is_null_in_all_chunks_but_the_last_and_absent_unless_asked_for(talking_url: str) -> None:
    body = {"model": MODEL, "messages": said(), "stream": True, **TEXT_ONLY}
    for options, seen in ((None, [False]), ({"include_usage": True}, [True])):
        answer = Client(base_url=talking_url, trust_env=False).post(
            "/v1/chat/completions", json={**body, "stream_options": options}
        )
        *events, done = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
        chunks = [json.loads(event) for event in events]
        assert done == "[DONE]"
        assert ["usage" in chunks[0]] == seen
        assert bool(chunks[-1].get("usage")) is bool(options) and not any(chunk.get("usage") for chunk in chunks[:-1])


@pytest.mark.case("runtime:B8")
@pytest.mark.parametrize("stream", [False, True])
def test_choice_i_equals_the_only_choice_of_a_request_with_seed_plus_i(talker: OpenAI, stream: bool) -> None:
    if stream:
        whole = heard(ask(talker, n=3, stream=True, stream_options={"include_usage": True}))
        texts, usage = [whole.text[index] for index in range(3)], whole.usage
        assert all(whole.audio[index][WAV_HEADER_BYTES:] == expected_pcm() for index in range(3))
    else:
        answer = ask(talker, n=3)
        texts, usage = [choice.message.content for choice in answer.choices], answer.usage
        assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert texts == [expected_text(seed=seed) for seed in range(3)]
    assert (usage.prompt_tokens, usage.completion_tokens) == (4, 3 * 2 * STEPS)


@pytest.mark.case("runtime:B7")
def test_a_drawn_seed_is_reported_and_repeats_the_answer(talker: OpenAI) -> None:
    raw = talker.chat.completions.with_raw_response.create(model=MODEL, messages=said(), modalities=["text"])
    first, seed = raw.parse(), int(raw.headers["x-omni-seed"])
    assert first.seed == seed  # type: ignore[attr-defined]
    assert ask(talker, seed=seed, **TEXT_ONLY).choices[0].message.content == first.choices[0].message.content


@pytest.mark.case("runtime:A4")
@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_the_most_tokens_hold_for_the_text_and_the_audio_covers_what_is_said(talker: OpenAI, field: str) -> None:
    answer = ask(talker, **{field: 5})
    [choice] = answer.choices
    assert (choice.finish_reason, choice.message.content) == ("length", expected_text(tokens=5))
    assert base64.b64decode(choice.message.audio.data)[WAV_HEADER_BYTES:] == expected_pcm(items=5)


@pytest.mark.parametrize("stop", ["brown", ["brown", "fox"]])
def test_a_stop_text_ends_the_answer_and_is_named(talker: OpenAI, stop: Any) -> None:
    choice = ask(talker, stop=stop, **TEXT_ONLY).choices[0]
    assert (choice.message.content, choice.finish_reason, choice.stop_reason) == ("the quick ", "stop", "brown")


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_come_for_each_token_with_as_many_others_as_asked_for(talker: OpenAI, stream: bool) -> None:
    answer = ask(talker, logprobs=True, top_logprobs=2, max_tokens=3, stream=stream, **TEXT_ONLY)
    choices = [choice for chunk in answer for choice in chunk.choices] if stream else answer.choices
    tokens = [token for choice in choices if choice.logprobs for token in choice.logprobs.content]
    assert [token.token for token in tokens] == ["the ", "quick ", "brown "]
    assert all(token.top_logprobs[0].token == token.token and len(token.top_logprobs) == 2 for token in tokens)
    assert bytes(tokens[0].bytes) == b"the "


def test_logprobs_without_others_are_those_of_the_tokens_alone(talker: OpenAI) -> None:
    [token] = ask(talker, logprobs=True, max_tokens=1, **TEXT_ONLY).choices[0].logprobs.content
    assert token.top_logprobs == []


@pytest.mark.parametrize("nested", [False, True])
def test_each_stage_may_have_sampling_of_its_own_beside_or_inside_extra_body(talking_url: str, nested: bool) -> None:
    own = {"sampling_params_list": [{"max_tokens": 3, "detokenize": True}, {"temperature": 0.9}, {}]}
    body = {"messages": said(), "seed": 0, "max_tokens": 9, **({"extra_body": own} if nested else own)}
    answer = Client(base_url=talking_url, trust_env=False).post("/v1/chat/completions", json=body).json()
    assert answer["choices"][0]["message"]["content"] == expected_text(tokens=3)


def test_the_sdk_s_extra_body_reaches_the_stages(talker: OpenAI) -> None:
    extra = {"sampling_params_list": [{"seed": 2}, {}, {}], "mm_processor_kwargs": {}, "top_k": 5, "min_p": 0.1}
    assert ask(talker, extra_body=extra, **TEXT_ONLY).choices[0].message.content == expected_text(seed=2)


def test_every_field_of_the_sdk_that_has_no_effect_is_taken(talker: OpenAI) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    answer = ask(
        talker,
        **TEXT_ONLY,
        user="somebody",
        metadata={"team": "a"},
        store=False,
        response_format={"type": "text"},
        service_tier="auto",
        tools=[tool],
        tool_choice="auto",
        parallel_tool_calls=True,
        presence_penalty=0.5,
        frequency_penalty=-0.5,
        temperature=0.7,
        top_p=0.9,
        safety_identifier="s",
        prompt_cache_key="k",
    )
    assert answer.choices[0].message.content == expected_text()


def test_a_conversation_of_all_roles_is_answered_to_its_last_message(talker: OpenAI) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "developer", "content": [{"type": "text", "text": "be kind"}]},
        {"role": "user", "content": "look", "name": "ann"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "a fox", "tool_call_id": "c1"},
        {"role": "user", "content": [{"type": "text", "text": "the quick"}, {"type": "text", "text": "brown fox"}]},
    ]
    assert ask(talker, messages=messages, **TEXT_ONLY).choices[0].message.content == expected_text()


@pytest.mark.case("runtime:L31")
async def test_the_async_sdk_gets_many_concurrent_answers_each_its_own(talking_url: str) -> None:
    async def streamed(openai: AsyncOpenAI, tag: int) -> Heard:
        whole = Heard()
        async for chunk in await openai.chat.completions.create(
            model=MODEL, messages=said(f"tag{tag}"), stream=True, audio={"voice": "ryan", "format": "pcm16"}
        ):
            take(whole, chunk)
        return whole

    async with AsyncOpenAI(base_url=f"{talking_url}/v1", api_key="none", max_retries=0, timeout=60) as openai:
        wholes = await asyncio.gather(*(streamed(openai, tag) for tag in range(32)))
    assert [whole.text[0] for whole in wholes] == [expected_text(f"tag{tag}") for tag in range(32)]
    assert all(whole.audio[0] == expected_pcm() for whole in wholes)


@pytest.mark.case("runtime:S3")
@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_the_shortest_answers_are_spoken_too(talker: OpenAI, tokens: int) -> None:
    whole = heard(ask(talker, stream=True, max_tokens=tokens, audio={"voice": "ryan", "format": "pcm16"}))
    assert whole.audio[0] == expected_pcm(tokens)


def test_headers_name_the_seed_and_every_replica(talker: OpenAI) -> None:
    raw = talker.chat.completions.with_raw_response.create(model=MODEL, messages=said(WORDS), seed=4)
    assert raw.headers["x-omni-seed"] == "4"
    assert raw.headers["x-omni-replicas"] == "; ".join(f"{stage}={stage}" for stage in STAGES)


TOOL: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CALLING = 'I look <tool_call>{"name":"look","arguments":{"at":"fox"}}</tool_call>'


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_model_writes_as_a_call_of_a_tool_is_given_as_one(talker: OpenAI, stream: bool) -> None:
    asked: dict[str, Any] = {"messages": said(CALLING), "tools": [TOOL], "max_tokens": 3, **TEXT_ONLY}
    if stream:
        with talker.chat.completions.stream(model=MODEL, seed=0, **asked) as events:
            choice: Any = events.get_final_completion().choices[0]
    else:
        choice = ask(talker, **asked).choices[0]
    [call] = choice.message.tool_calls
    assert (call.type, call.function.name, json.loads(call.function.arguments)) == ("function", "look", {"at": "fox"})
    assert call.id.startswith("call_")
    assert (choice.message.content.strip(), choice.finish_reason) == ("I look", "tool_calls")


def test_without_tools_or_with_none_to_be_called_text_stays_text(talker: OpenAI) -> None:
    for extra in ({}, {"tools": [TOOL], "tool_choice": "none"}):
        choice = ask(talker, messages=said(CALLING), max_tokens=3, **TEXT_ONLY, **extra).choices[0]
        assert (choice.message.content.strip(), choice.message.tool_calls) == (CALLING, None)

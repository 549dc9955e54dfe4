"""What the fake engine says follows from the request alone, and item by item is the same as at once."""

from array import array
from typing import Any

import pytest

from omni_contract.wire.payload import Array, Payload
from omni_runtime.engines.fake_answers import (
    SAMPLE_RATE,
    SAMPLES_PER_ITEM,
    fake_sound,
    fake_text,
    token_id,
    whole_text,
)

CHAT: Payload = {"messages": [{"role": "user", "content": [{"type": "text", "text": "the quick fox"}]}]}


def said(request: Payload, steps: int = 5, **parameters: Any) -> Payload:
    return whole_text(fake_text(request, parameters, steps))


@pytest.mark.parametrize(
    "request_", [CHAT, {"prompt": "the quick fox"}, {"input": "the quick fox", "voice": "ryan"}], ids=str
)
def test_the_words_of_a_request_are_said_over_and_over(request_: Payload) -> None:
    assert said(request_)["text"] == "the quick fox the quick "


def test_the_seed_says_with_which_word_to_begin() -> None:
    assert said(CHAT, seed=2)["text"] == "fox the quick fox the "


def test_each_token_has_an_id_and_the_first_says_what_was_read() -> None:
    first, second = fake_text(CHAT, {}, 2)
    assert (first["token_ids"], first["prompt_tokens"]) == ([token_id("the ")], 3)
    assert "prompt_tokens" not in second


def test_an_answer_that_was_not_allowed_to_be_longer_says_so() -> None:
    assert said(CHAT, steps=2, max_tokens=2)["finish_reason"] == "length"
    assert said(CHAT, steps=2, max_tokens=3)["finish_reason"] == "stop"


@pytest.mark.parametrize(("stop", "text"), [(["fox"], "the quick "), (["ick fo"], "the qu"), (["the"], "")])
def test_a_stop_text_ends_the_answer_before_it_even_across_tokens(stop: list[str], text: str) -> None:
    answer = said(CHAT, stop=stop)
    assert (answer["text"], answer["finish_reason"], answer["stop_reason"]) == (text, "stop", stop[0])


def test_logprobs_come_for_each_token_if_asked_for() -> None:
    logprobs = said(CHAT, steps=2, logprobs=2)["logprobs"]
    assert [(entry["token"], [top["token"] for top in entry["top"]]) for entry in logprobs] == [  # type: ignore
        ("the ", ["the ", "quick "]),
        ("quick ", ["quick ", "the "]),
    ]


def test_media_are_named_with_their_size_and_what_is_in_them() -> None:
    def words(color: int) -> str:
        image = Array("uint8", (1, 2, 3), memoryview(bytes([color] * 6)))
        return str(said({"messages": [{"content": [{"type": "image", "image": image}]}]}, steps=1)["text"])

    assert words(1).startswith("image:1x2x3:")
    assert words(1) != words(2)


def test_sound_made_item_by_item_equals_sound_made_at_once() -> None:
    def samples(first: int, items: int) -> "array[float]":
        audio = fake_sound(first, items)["audio"]
        assert isinstance(audio, Array)
        return array("f", bytes(audio.data))

    assert samples(0, 3) == samples(0, 1) + samples(1, 1) + samples(2, 1)
    assert len(samples(0, 3)) == 3 * SAMPLES_PER_ITEM
    assert fake_sound(0)["sample_rate"] == SAMPLE_RATE

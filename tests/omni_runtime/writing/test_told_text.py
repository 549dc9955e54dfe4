"""Text bit by bit: whole characters only, and a stop text never shows, however its tokens come."""

import pytest
from tokenizers import Tokenizer, decoders, models

from omni_runtime.writing.told_text import ToldText

VOCABULARY = {"a": 0, "b": 1, "c": 2, "Ġ": 3, "Ã": 4, "¤": 5, "ab": 6}
"""Byte level: 4 and 5 are the two bytes of one character."""


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    made = Tokenizer(models.WordLevel(VOCABULARY, unk_token="a"))
    made.decoder = decoders.ByteLevel()
    return made


def told(text: ToldText, token_ids: list[int], least: int = 0) -> list[str]:
    """What is told with each token; the last one ends the answer."""
    parts = []
    for number, token_id in enumerate(token_ids, 1):
        text.add(token_id, may_stop=number >= least)
        is_over = number == len(token_ids) or text.stop is not None
        parts.append(text.told(is_over))
        if is_over:
            break
    return parts


def test_each_token_tells_its_text(tokenizer: Tokenizer) -> None:
    assert told(ToldText(tokenizer, [0], {}), [0, 3, 1]) == ["a", " ", "b"]


def test_half_a_character_waits_for_the_other_half(tokenizer: Tokenizer) -> None:
    assert told(ToldText(tokenizer, [0], {}), [4, 5, 0]) == ["", "ä", "a"]


def test_what_may_begin_a_stop_text_is_held_back_until_it_does_not(tokenizer: Tokenizer) -> None:
    text = ToldText(tokenizer, [0], {"stop": ["bc"]})
    assert told(text, [0, 1, 0]) == ["", "a", "ba"]
    assert text.stop is None


def test_a_stop_text_ends_the_answer_and_is_left_out(tokenizer: Tokenizer) -> None:
    text = ToldText(tokenizer, [0], {"stop": ["bc"]})
    assert "".join(told(text, [0, 1, 2, 0])) == "a"
    assert text.stop == "bc"


def test_a_stop_text_is_kept_if_asked_for(tokenizer: Tokenizer) -> None:
    text = ToldText(tokenizer, [0], {"stop": ["bc"], "include_stop_str_in_output": True})
    assert "".join(told(text, [0, 1, 2])) == "abc"


def test_the_first_of_several_stop_texts_counts(tokenizer: Tokenizer) -> None:
    text = ToldText(tokenizer, [0], {"stop": ["b", "ab"]})
    assert "".join(told(text, [2, 6])) == "c"
    assert text.stop == "ab"


def test_a_stop_text_before_the_least_number_of_tokens_does_not_count(tokenizer: Tokenizer) -> None:
    text = ToldText(tokenizer, [0], {"stop": ["b"]})
    assert "".join(told(text, [1, 0, 1], least=3)) == "ba"
    assert text.stop == "b"

from pathlib import Path
from random import Random

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from omni_runtime.bench.settings import BenchError
from omni_runtime.bench.words import WORDS, PlainWords, TokenizerWords


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a tokenizer that knows three words, and a sign that no text shall hold."""
    tokenizer = Tokenizer(WordLevel({"red": 0, "fox": 1, "den": 2, "[UNK]": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_a_tokenizer_makes_texts_of_exactly_so_many_tokens(folder: Path) -> None:
    words = TokenizerWords(folder)
    text = words.text(Random(0), 20)
    assert words.length(text) == 20 and set(text.split()) == {"red", "fox", "den"}
    assert words.text(Random(0), 20) == text
    assert TokenizerWords(folder / "tokenizer.json").length("a red fox") == 3


def test_a_tokenizer_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"--tokenizer .*tokenizer\.json"):
        TokenizerWords(tmp_path)


def test_without_one_a_word_is_a_token() -> None:
    words = PlainWords()
    assert words.length(words.text(Random(0), 7)) == 7
    assert all(word.isalpha() and word.islower() for word in WORDS)

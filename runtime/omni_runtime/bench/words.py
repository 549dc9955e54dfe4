"""Text of a wanted length: words of a list, or tokens of a tokenizer."""

from pathlib import Path
from random import Random
from typing import Protocol

from omni_runtime.bench.sampler import sentence
from omni_runtime.bench.settings import BenchError

WORDS = tuple(
    word
    for line in (
        "time year people way day man thing woman life child world school state family student group country problem",
        "hand part place case week company system program question work number night point home water room mother area",
        "money story fact month lot right study book eye job word business issue side kind head house service friend",
        "father power hour game line end member law car city name team minute idea body back parent face level office",
    )
    for word in line.split()
)
MOST_TRIES = 8


class Vocabulary(Protocol):
    def text(self, dice: Random, length: int) -> str:
        """Random text of so many tokens."""

    def length(self, text: str) -> int:
        """About how many tokens it has."""


class PlainWords:
    """A common word is a token of most tokenizers; how many it were, the server tells."""

    def text(self, dice: Random, length: int) -> str:
        return sentence(dice, WORDS, length)

    def length(self, text: str) -> int:
        return len(text.split())


class TokenizerWords:
    """Exact, as far as random tokens can be written as text and read again."""

    def __init__(self, folder: Path) -> None:
        file = folder / "tokenizer.json" if folder.is_dir() else folder
        try:
            content = file.read_text()
            from tokenizers import Tokenizer
        except ImportError as exc:
            raise BenchError('--tokenizer needs the package tokenizers; install the extra "runtime"') from exc
        except (OSError, UnicodeError) as exc:
            raise BenchError(f"--tokenizer {file}: {exc}") from exc
        self._tokenizer = Tokenizer.from_str(content)
        self._words = [id for id in range(self._tokenizer.get_vocab_size()) if self._decoded([id]).isalpha()]

    def text(self, dice: Random, length: int) -> str:
        ids = dice.choices(self._words, k=length)
        for _ in range(MOST_TRIES):
            text = self._decoded(ids)
            read = self._ids(text)
            if len(read) == length:
                return text
            ids = read[:length] + dice.choices(self._words, k=max(0, length - len(read)))
        return self._decoded(ids)

    def length(self, text: str) -> int:
        return len(self._ids(text))

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _decoded(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids))

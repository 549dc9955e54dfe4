"""Tokens as text, bit by bit: whole characters only, and nothing that may turn out to be the start of a stop text."""

from collections.abc import Sequence
from typing import Any

from tokenizers.decoders import DecodeStream

from omni_runtime.engines.ar.sampling import Sampling


class ToldText:
    """Of one request. `stop` is the stop text that has ended it."""

    def __init__(self, tokenizer: Any, prompt_ids: Sequence[int], sampling: Sampling) -> None:
        self._tokenizer = tokenizer
        self._stream = DecodeStream(
            ids=list(prompt_ids), skip_special_tokens=sampling.get("skip_special_tokens", True) is True
        )
        stops = sampling.get("stop") or []
        assert isinstance(stops, Sequence)
        self._stops = tuple(str(stop) for stop in stops)
        self._keeps_stop = sampling.get("include_stop_str_in_output") is True
        self._text = ""
        self._told = 0
        self.stop: str | None = None

    def add(self, token_id: int, may_stop: bool) -> None:
        """`may_stop`: enough was made for a stop text to count, as far as this token brings one about."""
        before = len(self._text)
        self._text += self._stream.step(self._tokenizer, token_id) or ""
        if not may_stop:
            return
        found = [(start, stop) for stop in self._stops if (start := self._found(stop, before)) >= 0]
        if found:
            start, self.stop = min(found)
            self._text = self._text[: start + (len(self.stop) if self._keeps_stop else 0)]

    def told(self, is_over: bool) -> str:
        """What is new and certain."""
        held = 0 if is_over else max((len(stop) - 1 for stop in self._stops), default=0)
        end = max(self._told, len(self._text) - held)
        new = self._text[self._told : end]
        self._told = end
        return new

    def _found(self, stop: str, before: int) -> int:
        """Where it begins, if it ends after the first `before` characters."""
        return self._text.find(stop, max(0, before - len(stop) + 1))

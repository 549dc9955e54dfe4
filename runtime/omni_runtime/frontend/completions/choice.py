"""One choice of a completion as it is written."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from omni_runtime.frontend.answers import ChosenToken, TextDelta
from omni_runtime.frontend.completions.schema import CompletionChoice, Logprobs


class WritingChoice:
    """Takes what the stage writes: tells it as it comes, and keeps it for the whole."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._text = ""
        self._tokens: list[ChosenToken] = []
        self._last = TextDelta("")

    def take(self, delta: TextDelta) -> CompletionChoice | None:
        """The change, unless there is none that a client could see."""
        offset, self._text, self._last = len(self._text), self._text + delta.text, delta
        self._tokens += delta.logprobs
        if not delta.text and not delta.logprobs:
            return None
        logprobs = logprobs_of(delta.logprobs, offset)
        return CompletionChoice(index=self._index, text=delta.text, finish_reason=None, logprobs=logprobs)

    def end(self) -> CompletionChoice:
        """The last change, which says why there is no more."""
        return CompletionChoice(
            index=self._index, text="", finish_reason=self._reason, stop_reason=self._last.stop_reason, logprobs=None
        )

    def whole(self) -> CompletionChoice:
        return self.end().model_copy(update={"text": self._text, "logprobs": logprobs_of(self._tokens, 0)})

    @property
    def _reason(self) -> Literal["stop", "length"]:
        return "length" if self._last.finish_reason == "length" else "stop"


def logprobs_of(tokens: Sequence[ChosenToken], offset: int) -> Logprobs | None:
    """`offset` is where the text of the first of them begins, in characters."""
    if not tokens:
        return None
    offsets = [*accumulate((len(token.token) for token in tokens[:-1]), initial=offset)]
    return Logprobs(
        tokens=[token.token for token in tokens],
        token_logprobs=[token.logprob for token in tokens],
        top_logprobs=[{ranked.token: ranked.logprob for ranked in token.top} for token in tokens],
        text_offset=offsets,
    )

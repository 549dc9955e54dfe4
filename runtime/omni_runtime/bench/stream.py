"""Pure: what the events of an answer say, in the forms that servers have for them."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from omni_runtime.bench.outcome import Outcome
from omni_runtime.bench.sound import SoundMeter

DATA, END = "data:", "[DONE]"


@dataclass
class Reader:
    """Notes what comes into an outcome; `now` says how many seconds the request is old."""

    outcome: Outcome
    now: Callable[[], float]

    def __post_init__(self) -> None:
        self._meter = SoundMeter()
        self._chunks = 0
        self.has_ended = False
        """Whether the answer has said that it is whole."""

    def line(self, line: str) -> None:
        """One line of an event stream."""
        if not line.startswith(DATA):
            return
        data = line.removeprefix(DATA).strip()
        if data == END:
            self.has_ended = True
            return
        event = json.loads(data)
        if "error" in event:
            self.outcome.error = words_of(event)
            return
        self._usage(event.get("usage"))
        for choice in event.get("choices") or ():
            self._choice(choice, event.get("modality"))

    def sound(self, data: bytes) -> None:
        """Bytes of a file of sound, as they come."""
        if data and self.outcome.audio_at_s is None:
            self.outcome.audio_at_s = self.now()
        self._meter.add(data)
        self.outcome.audio_s, self.outcome.audio_frames = self._meter.seconds, self._meter.frames

    def whole(self, answer: dict[str, Any]) -> None:
        """An answer that came at once."""
        self.has_ended = True
        self.outcome.images = len(answer.get("data") or ())
        usage = answer.get("usage") or {}
        self.outcome.input_tokens = usage.get("input_tokens") or 0
        self.outcome.output_tokens = usage.get("output_tokens") or 0

    def _choice(self, choice: dict[str, Any], modality: str | None) -> None:
        """A completion has its text in the choice; vllm-omni says by a modality that a chat's content is sound."""
        delta = choice.get("delta") or {}
        text = choice.get("text") or delta.get("content") or ""
        if modality == "audio":
            self.sound(base64.b64decode(text))
            text = ""
        if text:
            self._chunks += 1
            self.outcome.text += text
            self.outcome.text_at_s.append(self.now())
            self.outcome.output_tokens = max(self.outcome.output_tokens, self._chunks)
        audio = delta.get("audio") or {}
        if audio.get("data"):
            self.sound(base64.b64decode(audio["data"]))
        if lost := delta.get("audio_error"):
            self.outcome.error = f"no audio: {words_of({'error': lost})}"

    def _usage(self, usage: dict[str, Any] | None) -> None:
        """Of text alone: what was made on the way to sound is another matter."""
        if usage:
            details = usage.get("completion_tokens_details") or {}
            self.outcome.input_tokens = usage["prompt_tokens"]
            self.outcome.output_tokens = details.get("text_tokens") or usage.get("completion_tokens") or 0


def words_of(answer: Any) -> str:
    """What an error's envelope says."""
    error = answer.get("error") if isinstance(answer, dict) else None
    return str(error["message"]) if isinstance(error, dict) and "message" in error else str(answer)[:200]

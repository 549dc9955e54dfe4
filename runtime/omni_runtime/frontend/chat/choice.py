"""One choice of a chat: gathered to a whole, or told change by change."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from omni_contract.wire.errors import OmniError
from omni_runtime.frontend.answers import ChosenToken, Ended, SoundEnd, TextDelta
from omni_runtime.frontend.chat.answer import (
    AssistantMessage,
    Audio,
    AudioChange,
    CalledFunction,
    Choice,
    ChoiceChange,
    FinishReason,
    Logprobs,
    MessageChange,
    TokenLogprob,
    ToolCall,
    ToolCallChange,
)
from omni_runtime.frontend.chat.parameters import Wanted
from omni_runtime.frontend.chat.tool_calls import CalledTool
from omni_runtime.frontend.errors import error_body
from omni_runtime.frontend.spoken import AudioBytes, SpokenDelta


@dataclass(frozen=True)
class ChoiceHead:
    """What is known of a choice before it begins."""

    index: int
    wanted: Wanted
    id: str
    created: int

    @property
    def audio_id(self) -> str:
        return f"audio_{self.id}"


@dataclass
class WholeChoice:
    """Gathers a choice; `usage` and `replicas` are there at its end."""

    head: ChoiceHead
    ended: Ended | None = None
    audio_error: OmniError | None = None
    _text: list[str] = field(default_factory=list)
    _audio: list[bytes] = field(default_factory=list)
    _calls: list[CalledTool] = field(default_factory=list)
    _logprobs: list[ChosenToken] = field(default_factory=list)
    _last: TextDelta = field(default_factory=lambda: TextDelta(""))

    def take(self, delta: SpokenDelta | CalledTool) -> None:
        match delta:
            case CalledTool():
                self._calls.append(delta)
            case TextDelta():
                self._text.append(delta.text)
                self._logprobs += delta.logprobs
                self._last = delta
            case AudioBytes():
                self._audio.append(delta.data)
            case SoundEnd():
                self.audio_error = delta.error
            case Ended():
                self.ended = delta

    def choice(self) -> Choice:
        return Choice(
            index=self.head.index,
            message=self._message(),
            finish_reason=finish_reason(self._last, bool(self._calls)),
            stop_reason=self._last.stop_reason,
            logprobs=logprobs_of(self._logprobs),
        )

    def _message(self) -> AssistantMessage:
        text, audio = "".join(self._text), None
        if self.head.wanted.audio and self.audio_error is None:
            data = base64.b64encode(b"".join(self._audio)).decode()
            audio = Audio(id=self.head.audio_id, data=data, expires_at=self.head.created, transcript=text)
        return AssistantMessage(
            content=text if self.head.wanted.text else None,
            audio=audio,
            audio_error=None if self.audio_error is None else error_body(self.audio_error),
            tool_calls=[tool_call(self.head, number, call) for number, call in enumerate(self._calls)] or None,
        )


class TellingChoice:
    """Tells a choice in changes. Why the text ended comes last, since many clients stop reading there."""

    def __init__(self, head: ChoiceHead) -> None:
        self._head = head
        self._has_begun = False
        self._calls = 0
        self._last = TextDelta("")

    def changes(self, delta: SpokenDelta | CalledTool) -> Iterator[ChoiceChange]:
        if not self._has_begun:
            self._has_begun = True
            yield self._change(MessageChange(role="assistant", content=""))
        match delta:
            case TextDelta():
                self._last = delta
                if delta.text or delta.logprobs:
                    yield self._change(self._words(delta.text), logprobs=logprobs_of(delta.logprobs))
            case CalledTool():
                call = tool_call(self._head, self._calls, delta)
                yield self._change(MessageChange(tool_calls=[ToolCallChange(index=self._calls, **call.model_dump())]))
                self._calls += 1
            case AudioBytes():
                data = base64.b64encode(delta.data).decode()
                yield self._change(MessageChange(audio=AudioChange(id=self._head.audio_id, data=data)))
            case SoundEnd():
                yield self._change(self._sound_end(delta.error))
            case Ended():
                yield ChoiceChange(
                    index=self._head.index,
                    delta=MessageChange(),
                    finish_reason=finish_reason(self._last, bool(self._calls)),
                    stop_reason=self._last.stop_reason,
                )

    def _words(self, text: str) -> MessageChange:
        wanted = self._head.wanted
        change = MessageChange(content=text) if wanted.text else MessageChange()
        if wanted.audio:
            change.audio = AudioChange(id=self._head.audio_id, transcript=text)
        return change

    def _sound_end(self, error: OmniError | None) -> MessageChange:
        if error is not None:
            return MessageChange(audio_error=error_body(error))
        return MessageChange(audio=AudioChange(id=self._head.audio_id, expires_at=self._head.created))

    def _change(self, delta: MessageChange, logprobs: Logprobs | None = None) -> ChoiceChange:
        return ChoiceChange(index=self._head.index, delta=delta, finish_reason=None, logprobs=logprobs)


def tool_call(head: ChoiceHead, number: int, call: CalledTool) -> ToolCall:
    return ToolCall(
        id=f"call_{head.id}-{number}",
        type="function",
        function=CalledFunction(name=call.name, arguments=call.arguments),
    )


def finish_reason(last: TextDelta, has_called: bool) -> FinishReason:
    if has_called:
        return "tool_calls"
    return "length" if last.finish_reason == "length" else "stop"


def logprobs_of(tokens: Sequence[ChosenToken]) -> Logprobs | None:
    return Logprobs(content=[TokenLogprob.chosen(token) for token in tokens]) if tokens else None

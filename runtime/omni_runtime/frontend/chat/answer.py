"""POST /v1/chat/completions as it is answered, whole or in chunks."""

from typing import Literal, Self, TypeAlias

from pydantic import BaseModel

from omni_runtime.frontend.answers import ChosenToken, RankedToken
from omni_runtime.frontend.errors import ErrorBody
from omni_runtime.frontend.text.usage import CompletionUsage

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls"]


class TopLogprob(BaseModel):
    token: str
    logprob: float
    bytes: list[int]

    @classmethod
    def of(cls, ranked: RankedToken) -> Self:
        return cls(token=ranked.token, logprob=ranked.logprob, bytes=ranked.bytes)


class TokenLogprob(TopLogprob):
    top_logprobs: list[TopLogprob]

    @classmethod
    def chosen(cls, token: ChosenToken) -> Self:
        top = [TopLogprob.of(ranked) for ranked in token.top]
        return cls(token=token.token, logprob=token.logprob, bytes=token.bytes, top_logprobs=top)


class Logprobs(BaseModel):
    content: list[TokenLogprob]
    refusal: None = None


class Audio(BaseModel):
    """`expires_at` is the moment of the answer: audio is not kept."""

    id: str
    data: str
    expires_at: int
    transcript: str


class CalledFunction(BaseModel):
    name: str
    arguments: str


class ToolCall(BaseModel):
    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class ToolCallChange(ToolCall):
    """A call comes whole, once its arguments are complete."""

    index: int


class ImageUrl(BaseModel):
    url: str


class ImageContent(BaseModel):
    type: Literal["image_url"] = "image_url"
    image_url: ImageUrl


class AssistantMessage(BaseModel):
    """Content is a list of pictures if the model paints.

    `audio_error` is ours: why there is no audio, where only the text could be made.
    """

    role: Literal["assistant"] = "assistant"
    content: str | list[ImageContent] | None
    refusal: None = None
    audio: Audio | None = None
    audio_error: ErrorBody | None = None
    tool_calls: list[ToolCall] | None = None


class Choice(BaseModel):
    index: int
    message: AssistantMessage
    finish_reason: FinishReason
    stop_reason: str | int | None = None
    logprobs: Logprobs | None = None


class ChatCompletion(BaseModel):
    """`system_fingerprint` is the model's revision; `seed` is ours, and repeats the answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage
    system_fingerprint: str
    seed: int


class AudioChange(BaseModel):
    id: str | None = None
    data: str | None = None
    transcript: str | None = None
    expires_at: int | None = None


class MessageChange(BaseModel):
    role: Literal["assistant"] | None = None
    content: str | None = None
    audio: AudioChange | None = None
    audio_error: ErrorBody | None = None
    tool_calls: list[ToolCallChange] | None = None


class ChoiceChange(BaseModel):
    index: int
    delta: MessageChange
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    logprobs: Logprobs | None = None


class ChatCompletionChunk(BaseModel):
    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChoiceChange]
    usage: CompletionUsage | None = None
    system_fingerprint: str

"""POST /v1/chat/completions as it is asked: the official SDK's fields, and ours."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from omni_runtime.frontend.text.by_stage import SamplingParamsList
from omni_runtime.frontend.text.sampling import EMBEDS, Count, SamplingFields
from omni_runtime.frontend.validation import ApiRequest, refusal
from omni_runtime.frontend.voices import Voice
from omni_runtime.media.audio import AudioFormat

PartType: TypeAlias = Literal["text", "image_url", "input_audio", "audio_url", "video_url"]
Modality: TypeAlias = Literal["text", "audio", "image"]
NOT_KEPT = "earlier audio is not kept here; send its transcript as content"
NESTED = "extra_body"
PICTURE_FIELDS = (
    *("height", "width", "num_inference_steps", "guidance_scale", "true_cfg_scale"),
    *("negative_prompt", "num_outputs_per_prompt"),
)
"""For models that paint."""
Side: TypeAlias = Annotated[int, Field(ge=1, le=999_999)]
Guidance: TypeAlias = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class MediaUrl(ApiRequest):
    url: Annotated[str, Field(min_length=1)] = Field(description="http(s) link, data URL, or file URL if allowed.")
    detail: Literal["auto", "low", "high", "original"] | None = Field(None, description="Accepted, without effect.")


class InputAudio(ApiRequest):
    data: Annotated[str, Field(min_length=1)] = Field(description="The file in base64.")
    format: Literal["wav", "mp3", "flac", "ogg", "opus", "aac", "m4a"]


class ContentPart(ApiRequest):
    """One part of a message; `type` names the only other field that is set."""

    REFUSED: ClassVar[Mapping[str, str]] = {
        "file": "send images, audio and video as parts of their own",
        "refusal": "send what the model said as text",
    }

    type: PartType
    text: str | None = None
    image_url: MediaUrl | None = None
    input_audio: InputAudio | None = None
    audio_url: MediaUrl | None = None
    video_url: MediaUrl | None = None

    @model_validator(mode="after")
    def _has_its_own_field(self) -> "ContentPart":
        for name in ("text", "image_url", "input_audio", "audio_url", "video_url"):
            if (getattr(self, name) is not None) != (name == self.type):
                wrong = "is missing" if name == self.type else "does not belong there"
                raise refusal(name, f'a part of type "{self.type}": {name} {wrong}')
        return self


class FunctionCall(ApiRequest):
    name: Annotated[str, Field(min_length=1, max_length=256)]
    arguments: str


class ToolCall(ApiRequest):
    id: str
    type: Literal["function"]
    function: FunctionCall


def _as_parts(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


Content: TypeAlias = Annotated[
    list[ContentPart], BeforeValidator(_as_parts, json_schema_input_type=str | list[ContentPart])
]


class Message(ApiRequest):
    REFUSED: ClassVar[Mapping[str, str]] = {
        "audio": NOT_KEPT,
        "function_call": "use tool_calls",
        "refusal": "send what the model said as content",
    }

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None = None
    name: Annotated[str, Field(max_length=256)] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Message":
        if not self.content and not self.tool_calls:
            raise refusal("content", f"content: a message of role {self.role} needs one")
        if self.tool_calls and self.role != "assistant":
            raise refusal("tool_calls", f"tool_calls: only an assistant makes them, this role is {self.role}")
        if (self.tool_call_id is None) == (self.role == "tool"):
            raise refusal("tool_call_id", "tool_call_id: messages of role tool have one, and no others")
        return self


class FunctionTool(ApiRequest):
    name: Annotated[str, Field(min_length=1, max_length=256)]
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None
    strict: bool | None = None


class Tool(ApiRequest):
    type: Literal["function"]
    function: FunctionTool


class AudioOptions(ApiRequest):
    voice: Voice | None = None
    format: Literal["wav", "mp3", "flac", "opus", "aac", "pcm16", "pcm"] | None = Field(
        None, description="wav if left out; pcm16 is raw samples."
    )


class TextFormat(ApiRequest):
    type: Literal["text"]


class ChatCompletionRequest(SamplingFields):
    """Identifiers of the user, `store` and `metadata` are accepted, without effect."""

    REFUSED: ClassVar[Mapping[str, str]] = {
        "functions": "use tools",
        "function_call": "use tool_choice",
        "logit_bias": "use the sampling parameters",
        "prompt_embeds": EMBEDS,
        "prediction": "the whole answer is made anew",
        "web_search_options": "the model searches nothing",
        "reasoning_effort": "the model has one way of answering",
        "verbosity": "say in the messages how long the answer should be",
        "moderation": "nothing is moderated here",
    }

    messages: Annotated[list[Message], Field(min_length=1, max_length=4096)]
    model: str | None = None
    modalities: Annotated[list[Modality], Field(min_length=1, max_length=3)] | None = Field(
        None, description="All that the model answers with, if left out."
    )
    audio: AudioOptions | None = None
    max_completion_tokens: Count | None = Field(None, description="The most text tokens; the same as max_tokens.")
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    tools: Annotated[list[Tool], Field(max_length=128)] | None = None
    tool_choice: Literal["none", "auto"] | None = None
    parallel_tool_calls: bool | None = None
    response_format: TextFormat | None = None
    sampling_params_list: SamplingParamsList | None = None
    mm_processor_kwargs: dict[str, JsonValue] | None = None
    extra_body: dict[str, JsonValue] | None = Field(
        None, description="Fields of ours, as the SDK would put them beside the others."
    )
    height: Side | None = Field(None, description="Of a picture, with width; for models that paint, as those below.")
    width: Side | None = None
    num_inference_steps: Count | None = None
    guidance_scale: Guidance | None = None
    true_cfg_scale: Guidance | None = None
    negative_prompt: str | None = None
    num_outputs_per_prompt: Annotated[int, Field(ge=1, le=10)] | None = Field(
        None, description="Pictures in each choice."
    )
    metadata: dict[str, str] | None = None
    store: Literal[False] | None = None
    service_tier: Literal["auto", "default"] | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _lay_extra_body_beside_the_others(cls, data: Any) -> Any:
        """Some clients send it as a key of the JSON, where the SDK puts what is in it one level up."""
        if not isinstance(data, dict) or not isinstance(data.get(NESTED), dict):
            return data
        for name in data[NESTED]:
            if name in data:
                raise refusal(name, f"{name}: it is in the request and in its extra_body; send one of them")
        return {**{name: value for name, value in data.items() if name != NESTED}, **data[NESTED]}

    @model_validator(mode="after")
    def _fields_agree(self) -> "ChatCompletionRequest":
        if None not in (self.max_tokens, self.max_completion_tokens) and self.max_tokens != self.max_completion_tokens:
            raise refusal("max_tokens", "max_tokens and max_completion_tokens are the same setting; send one of them")
        if self.top_logprobs is not None and not self.logprobs:
            raise refusal("top_logprobs", "top_logprobs: it needs logprobs: true")
        if self.audio is not None and self.modalities is not None and "audio" not in self.modalities:
            raise refusal("audio", 'audio: it needs "audio" in modalities')
        if self.tool_choice == "auto" and not self.tools:
            raise refusal("tool_choice", "tool_choice: it needs tools")
        return self

    @property
    def longest(self) -> int | None:
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def audio_format(self) -> AudioFormat:
        asked = self.audio.format if self.audio and self.audio.format else "wav"
        return "pcm" if asked == "pcm16" else asked

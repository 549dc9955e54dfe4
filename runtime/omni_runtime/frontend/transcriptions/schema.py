"""POST /v1/audio/transcriptions and /v1/audio/translations on the wire, as the official SDK sends and reads them."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

from omni_runtime.frontend.answers import ChosenToken
from omni_runtime.frontend.text.sampling import Count, Seed
from omni_runtime.frontend.text.usage import CompletionUsage
from omni_runtime.frontend.transcriptions.languages import LANGUAGES
from omni_runtime.frontend.validation import ApiRequest, refusal

TIMED_FORMATS = ("verbose_json", "srt", "vtt", "diarized_json")
LONGEST_PROMPT = 4096
NO_SPEAKERS = "who speaks is not told apart"

AudioBytes: TypeAlias = Annotated[bytes, Field(min_length=1, strict=True, json_schema_extra={"format": "binary"})]


class TranslationRequest(ApiRequest):
    """What every form that comes with speech has. Its values are texts, so that numbers are read from them."""

    model_config = ConfigDict(strict=False)

    file: AudioBytes = Field(description="The sound, in any format that a chat takes.")
    model: str | None = None
    prompt: Annotated[str, Field(max_length=LONGEST_PROMPT)] | None = Field(
        None, description="What goes before, or how names are written; the model is told."
    )
    response_format: Literal["json", "text"] | None = None
    temperature: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    max_completion_tokens: Count | None = Field(None, description="The most text tokens of the answer.")
    seed: Seed | None = Field(None, description="Drawn if absent, and reported as x-omni-seed.")
    priority: Annotated[int, Field(ge=-1000, le=1000)] | None = None

    @field_validator("response_format", mode="before")
    @classmethod
    def _has_no_times(cls, value: Any) -> Any:
        if value in TIMED_FORMATS:
            text = f'response_format: "{value}" needs to know when each word is said, and these models do not tell'
            raise refusal("response_format", f"{text}; use json or text")
        return value

    @field_validator("file", mode="before")
    @classmethod
    def _is_a_file(cls, value: Any) -> Any:
        if isinstance(value, str | list):
            what = "a text" if isinstance(value, str) else f"{len(value)} files"
            raise refusal("file", f"file: send one file with its name, got {what}")
        return value

    @property
    def instruction(self) -> str:
        return with_context("Translate the speech in the audio into English text.", self.prompt)

    @property
    def wants_text(self) -> bool:
        return self.response_format == "text"

    @property
    def wants_logprobs(self) -> bool:
        return False


class TranscriptionRequest(TranslationRequest):
    REFUSED: ClassVar[Mapping[str, str]] = {
        "chunking_strategy": "the whole sound is heard at once",
        "known_speaker_names": NO_SPEAKERS,
        "known_speaker_references": NO_SPEAKERS,
        "timestamp_granularities": "these models do not tell when a word is said",
        "keywords": "put them into prompt",
        "languages": "send the one that is spoken as language",
    }

    language: str | None = Field(None, description="What is spoken, as an ISO 639-1 code; heard by itself if left out.")
    stream: bool | None = None
    include: Annotated[list[Literal["logprobs"]], Field(max_length=1)] | None = Field(
        None, description="logprobs: of each token of the text."
    )

    @field_validator("language")
    @classmethod
    def _is_known(cls, code: str | None) -> str | None:
        if code is not None and code.lower() not in LANGUAGES:
            text = f'language: send an ISO 639-1 code ({", ".join(LANGUAGES)}), got "{code[:20]}"'
            raise refusal("language", text)
        return code

    @property
    def instruction(self) -> str:
        spoken = "" if self.language is None else f"{LANGUAGES[self.language.lower()]} "
        return with_context(f"Transcribe the {spoken}audio into text.", self.prompt)

    @property
    def wants_logprobs(self) -> bool:
        return bool(self.include)


def with_context(task: str, prompt: str | None) -> str:
    """The words in which the model is asked, as the cards of the families that listen have them."""
    context = f"\nWhat goes before, and how names are written: {prompt}" if prompt else ""
    return f"{task} Answer with nothing else.{context}"


class Logprob(BaseModel):
    token: str
    logprob: float
    bytes: list[int]

    @classmethod
    def of(cls, token: ChosenToken) -> "Logprob":
        return cls(token=token.token, logprob=token.logprob, bytes=token.bytes)


class TranscriptionUsage(BaseModel):
    """`input_seconds`, of the sound, is ours."""

    type: Literal["tokens"] = "tokens"
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_seconds: float

    @classmethod
    def of(cls, usage: CompletionUsage, seconds: float) -> "TranscriptionUsage":
        return cls(
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            total_tokens=usage.total_tokens,
            input_seconds=round(seconds, 6),
        )


FinishReason: TypeAlias = Literal["stop", "length"]


class Transcription(BaseModel):
    """`finish_reason` is ours: "length" says that the text was cut off."""

    text: str
    logprobs: list[Logprob] | None = None
    usage: TranscriptionUsage
    finish_reason: FinishReason


class TextDeltaEvent(BaseModel):
    type: Literal["transcript.text.delta"] = "transcript.text.delta"
    delta: str
    logprobs: list[Logprob] | None = None


class TextDoneEvent(Transcription):
    type: Literal["transcript.text.done"] = "transcript.text.done"

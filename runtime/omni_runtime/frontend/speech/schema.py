"""POST /v1/audio/speech on the wire: the official SDK's fields, and those of models with voices of their own."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field, field_validator, model_validator

from omni_runtime.frontend.text.by_stage import SamplingParamsList
from omni_runtime.frontend.text.sampling import Count, Seed
from omni_runtime.frontend.validation import ApiRequest, refusal
from omni_runtime.frontend.voices import Voice

TaskType: TypeAlias = Literal["CustomVoice", "VoiceDesign", "Base"]
Language: TypeAlias = Literal[
    "Auto",
    "Chinese",
    "English",
    "Japanese",
    "Korean",
    "German",
    "French",
    "Russian",
    "Portuguese",
    "Spanish",
    "Italian",
]
LONGEST_INSTRUCTIONS = 500


class SpeechRequest(ApiRequest):
    """What is to be said, in whose voice, as which file."""

    input: Annotated[str, Field(min_length=1)]
    model: str | None = None
    voice: Voice | None = Field(None, description="One of /v1/audio/voices; the model's first one if left out.")
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] | None = Field(
        None, description="mp3 if left out."
    )
    speed: Annotated[float, Field(ge=0.25, le=4, allow_inf_nan=False)] | None = None
    stream_format: Literal["audio", "sse"] | None = Field(
        None, description="The file itself as it is made, or events that hold it in base64; audio if left out."
    )
    stream: bool | None = Field(
        None, description="false waits for the whole file, whose header then says how long it is."
    )
    instructions: Annotated[str, Field(max_length=LONGEST_INSTRUCTIONS)] | None = Field(
        None, description="How it is to be said, or which voice is to be designed."
    )
    task_type: TaskType | None = Field(None, description="Base if there is ref_audio, else CustomVoice.")
    language: Language | None = None
    max_new_tokens: Count | None = Field(None, description="The most codec frames.")
    ref_audio: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="The voice to clone: a link or a data URL."
    )
    ref_text: str | None = Field(None, description="What is said in ref_audio.")
    x_vector_only_mode: bool | None = Field(
        None, description="Take only the sound of the voice from ref_audio, which then needs no ref_text."
    )
    seed: Seed | None = Field(None, description="Drawn if absent, and reported as x-omni-seed.")
    sampling_params_list: SamplingParamsList | None = None
    priority: Annotated[int, Field(ge=-1000, le=1000)] | None = Field(
        None, description="Orders the waiting requests of one API key, the least first; others' are not affected."
    )

    @field_validator("input")
    @classmethod
    def _input_says_something(cls, text: str) -> str:
        if not text.strip():
            raise refusal("input", "input: it holds nothing but white space")
        return text

    @model_validator(mode="after")
    def _task_has_what_it_needs(self) -> "SpeechRequest":
        for name in ("ref_text", "x_vector_only_mode"):
            if getattr(self, name) is not None and self.ref_audio is None:
                raise refusal(name, f"{name}: it says something of ref_audio, which is missing")
        match self.task:
            case "Base":
                self._check_reference()
            case _ if self.ref_audio is not None:
                raise refusal("ref_audio", f'ref_audio: only task_type "Base" clones a voice, not "{self.task}"')
            case "VoiceDesign" if not (self.instructions or "").strip():
                raise refusal("instructions", "instructions: they say which voice is to be designed")
        return self

    def _check_reference(self) -> None:
        if self.ref_audio is None:
            raise refusal("ref_audio", 'ref_audio: task_type "Base" clones the voice that it holds')
        if not self.ref_text and not self.x_vector_only_mode:
            raise refusal("ref_text", "ref_text: say what is said in ref_audio, or set x_vector_only_mode")

    @property
    def task(self) -> TaskType:
        return self.task_type or ("Base" if self.ref_audio is not None else "CustomVoice")

    @property
    def wants_events(self) -> bool:
        return self.stream_format == "sse"


class SpeechUsage(BaseModel):
    """`audio_seconds` is ours."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    audio_seconds: float


class SpeechDeltaEvent(BaseModel):
    type: Literal["speech.audio.delta"] = "speech.audio.delta"
    audio: str


class SpeechDoneEvent(BaseModel):
    type: Literal["speech.audio.done"] = "speech.audio.done"
    usage: SpeechUsage


class VoicesResponse(BaseModel):
    voices: list[str]

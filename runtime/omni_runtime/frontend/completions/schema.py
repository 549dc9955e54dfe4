"""POST /v1/completions on the wire, as the official SDK sends and reads it."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from omni_runtime.frontend.text.by_stage import SamplingParamsList
from omni_runtime.frontend.text.sampling import EMBEDS, SamplingFields, TokenId
from omni_runtime.frontend.text.usage import CompletionUsage
from omni_runtime.frontend.validation import refusal

MOST_PROMPTS = 64
LARGEST_ID = 2**31 - 1

Text: TypeAlias = Annotated[str, Field(min_length=1)]
Ids: TypeAlias = Annotated[list[TokenId], Field(min_length=1)]
Many: TypeAlias = Annotated[list[Text], Field(min_length=1, max_length=MOST_PROMPTS)]
ManyIds: TypeAlias = Annotated[list[Ids], Field(min_length=1, max_length=MOST_PROMPTS)]


def _prompts(value: Any) -> list[str | list[int]]:
    """One prompt or several, each as a text or as token ids."""
    is_one = isinstance(value, str) or (isinstance(value, list) and bool(value) and _is_id(value[0]))
    prompts = [value] if is_one else value
    if not isinstance(prompts, list) or not 1 <= len(prompts) <= MOST_PROMPTS or not all(map(_is_prompt, prompts)):
        raise refusal("prompt", f"prompt: send a text, a list of token ids, or 1 to {MOST_PROMPTS} of one of them")
    if len({type(prompt) for prompt in prompts}) > 1:
        raise refusal("prompt", "prompt: send either texts or token ids")
    return prompts


def _is_prompt(value: Any) -> bool:
    return bool(value) and (isinstance(value, str) or (isinstance(value, list) and all(map(_is_id, value))))


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_ID


class CompletionRequest(SamplingFields):
    REFUSED: ClassVar[Mapping[str, str]] = {
        "best_of": "use n; each choice is one run of the stage",
        "logit_bias": "use the sampling parameters",
        "prompt_embeds": EMBEDS,
        "suffix": "the text stage only goes on from the prompt",
    }

    prompt: Annotated[
        list[str | list[int]], BeforeValidator(_prompts, json_schema_input_type=Text | Ids | Many | ManyIds)
    ]
    model: str | None = None
    echo: Literal[False] | None = Field(None, description="The prompt is not given back.")
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = Field(None, description="Of each token, with so many others.")
    sampling_params_list: SamplingParamsList | None = None

    @model_validator(mode="after")
    def _choices_are_few(self) -> "CompletionRequest":
        if len(self.prompt) * (self.n or 1) > MOST_PROMPTS:
            raise refusal("n", f"n: {self.n} for each of {len(self.prompt)} prompts are more than {MOST_PROMPTS}")
        return self


class Logprobs(BaseModel):
    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoice(BaseModel):
    """In a stream `text` is what has been added, and `finish_reason` null but in the last."""

    index: int
    text: str
    finish_reason: Literal["stop", "length"] | None
    stop_reason: str | int | None = None
    logprobs: Logprobs | None = None


class Completion(BaseModel):
    """Whole, or one chunk of a stream. `system_fingerprint` is the model's revision."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage | None = None
    system_fingerprint: str

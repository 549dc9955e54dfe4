"""The fields that every endpoint of the text stage shares: how tokens are chosen, and when they end."""

import secrets
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from omni_contract.wire.payload import Value
from omni_runtime.frontend.validation import ApiRequest, refusal

MAX_SEED = 2**63 - 1
DRAWN_SEEDS = 2**32
MOST_STOPS = 16
EMBEDS = "embeddings go from stage to stage only; send a text or token ids"
"""A client's rows would be taken for what the model has read."""

Count: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]
Penalty: TypeAlias = Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)]
TokenId: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]
Choices: TypeAlias = Annotated[int, Field(ge=1, le=16)]
Seed: TypeAlias = Annotated[int, Field(ge=0, le=MAX_SEED)]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


AdapterName: TypeAlias = Annotated[str, Field(min_length=1, max_length=63)]
StopText: TypeAlias = Annotated[str, Field(min_length=1, max_length=256)]
Stops: TypeAlias = Annotated[
    Annotated[list[StopText], Field(max_length=MOST_STOPS)],
    BeforeValidator(_listed, json_schema_input_type=StopText | Annotated[list[StopText], Field(max_length=MOST_STOPS)]),
]


class StreamOptions(ApiRequest):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class SamplingFields(ApiRequest):
    """`best_of`-like searches are not offered: each choice is one run of the stage."""

    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=2**31 - 1)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    max_tokens: Count | None = None
    min_tokens: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    stop: Stops | None = None
    stop_token_ids: Annotated[list[TokenId], Field(max_length=64)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] | None = None
    ignore_eos: bool | None = None
    lora: AdapterName | None = Field(None, description="An adapter that the text stage has under this name.")
    seed: Seed | None = Field(
        None, description="Choice i equals the only choice of a request with seed + i. Drawn if absent."
    )
    n: Choices | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None
    priority: Annotated[int, Field(ge=-1000, le=1000)] | None = Field(
        None, description="Orders the waiting requests of one API key, the least first; others' are not affected."
    )

    @model_validator(mode="after")
    def _options_fit(self) -> "SamplingFields":
        if self.stream_options is not None and not self.stream:
            raise refusal("stream_options", "stream_options: they need stream: true")
        if self.min_tokens is not None and self.longest is not None and self.min_tokens > self.longest:
            raise refusal("min_tokens", f"min_tokens: {self.min_tokens} are more than the most, {self.longest}")
        return self

    @property
    def longest(self) -> int | None:
        """The most tokens that the request allows, None if it does not say."""
        return self.max_tokens

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    def sampling(self) -> Mapping[str, Value]:
        """What the client has set for the text stage; the rest is the stage table's and the engine's default."""
        asked: dict[str, Value] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "min_p": self.min_p,
            "max_tokens": self.longest,
            "min_tokens": self.min_tokens,
            "stop": self.stop,
            "stop_token_ids": self.stop_token_ids,
            "presence_penalty": self.presence_penalty,
            "frequency_penalty": self.frequency_penalty,
            "repetition_penalty": self.repetition_penalty,
            "ignore_eos": self.ignore_eos,
            "lora": self.lora,
        }
        return {name: value for name, value in asked.items() if value is not None}


def seeds_of(first: int | None, count: int) -> list[int]:
    """Choice i of a request equals the only choice of a request with this seed; the first is drawn if None."""
    start = secrets.randbelow(DRAWN_SEEDS) if first is None else first
    return [(start + index) % (MAX_SEED + 1) for index in range(count)]

"""`sampling_params_list`: values for each stage alone, in the order of the model's stages."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias, TypeGuard

from pydantic import Field, JsonValue

from omni_contract.api.nearest import did_you_mean
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Value
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.validation import LONGEST_VALUE, shortened

FIELD = "sampling_params_list"
LONGEST_LIST = 64
SamplingParamsList: TypeAlias = Annotated[
    list[dict[str, JsonValue]],
    Field(max_length=32, description="One object for each stage, in their order; {} leaves a stage its defaults."),
]
NAMES = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "max_tokens", "min_tokens", "stop", "stop_token_ids", "seed"),
        *("presence_penalty", "frequency_penalty", "repetition_penalty", "logprobs", "ignore_eos", "lora"),
        *("subtalker_temperature", "subtalker_top_k", "subtalker_top_p"),
        *("steps", "num_inference_steps", "guidance_scale", "true_cfg_scale", "width", "height"),
    }
)
WITHOUT_EFFECT = frozenset({"detokenize", "skip_special_tokens"})
"""Common in lists that were written for other servers; here the stage decides."""


def for_stage(stage: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """Parameters that reach one stage and no other."""
    return {f"{stage}.{name}": value for name, value in values.items()}


def for_each_stage(table: StageTable, values: Sequence[Mapping[str, JsonValue]] | None) -> dict[str, Value]:
    """Raises OmniError for an entry that no stage could use, or too few or too many of them."""
    if values is None:
        return {}
    names = [stage.name for stage in table.stages]
    if len(values) != len(names):
        raise _refusal(FIELD, f"it needs one object for each stage ({', '.join(names)}), got {len(values)}")
    chosen: dict[str, Value] = {}
    for index, (stage, entry) in enumerate(zip(names, values, strict=True)):
        chosen |= for_stage(stage, checked(f"{FIELD}[{index}]", entry))
    return chosen


def checked(where: str, entry: Mapping[str, JsonValue]) -> dict[str, Value]:
    """The parameters of an entry that have an effect. Raises OmniError for one that no stage could use."""
    chosen: dict[str, Value] = {}
    for name, value in entry.items():
        if name not in NAMES | WITHOUT_EFFECT:
            text = f'unknown parameter "{shortened(name, LONGEST_VALUE)}"{did_you_mean(name[:200], NAMES)}'
            raise _refusal(f"{where}.{shortened(name, LONGEST_VALUE)}", text)
        if not _is_usable(value):
            raise _refusal(f"{where}.{name}", "it must be a number, a boolean, a text, or a short list of them")
        if value is not None and name in NAMES:
            chosen[name] = [value] if name == "stop" and isinstance(value, str) else value
    return chosen


def _is_usable(value: JsonValue) -> TypeGuard[bool | int | float | str | list[bool | int | float | str] | None]:
    if isinstance(value, list):
        return len(value) <= LONGEST_LIST and all(_is_scalar(each) for each in value)
    return value is None or _is_scalar(value)


def _is_scalar(value: JsonValue) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int | str) and (not isinstance(value, int) or abs(value) < 2**63)


def _refusal(param: str, text: str) -> OmniError:
    return OmniError(ErrorCode.INVALID_REQUEST, f"{param}: {text}", param)

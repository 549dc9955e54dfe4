"""A request's sampling parameters, checked before any work starts: whoever sends a wrong one fails alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import TypeAlias, TypeGuard

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Value

MAX_INTEGER = 2**63 - 1
MAX_LOGPROBS = 20
"""vLLM's own bound, which is OpenAI's, too."""


@dataclass(frozen=True)
class Rule:
    """What a value must be; `demand` completes "it must be"."""

    holds: Callable[[Value], bool]
    demand: str


def _number(least: float, most: float = inf, demand: str = "") -> Rule:
    return Rule(
        lambda value: _is_number(value) and least <= value <= most,
        demand or f"a number from {least:g} to {most:g}",
    )


def _integer(least: int, most: int = MAX_INTEGER) -> Rule:
    demand = f"an integer of at least {least}" if most == MAX_INTEGER else f"an integer from {least} to {most}"
    return Rule(lambda value: _is_integer(value) and least <= value <= most, demand)


def _is_integer(value: Value) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Value) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_above(least: float, most: float = inf) -> Callable[[Value], bool]:
    return lambda value: _is_number(value) and least < value <= most


def _is_list_of(holds: Callable[[Value], bool]) -> Callable[[Value], bool]:
    return lambda value: (
        isinstance(value, Sequence) and not isinstance(value, str | bytes) and all(holds(item) for item in value)
    )


def _is_text(value: Value) -> bool:
    return isinstance(value, str) and value != ""


RULES: Mapping[str, Rule] = {
    "temperature": _number(0, 2),
    "top_p": Rule(_is_above(0, 1), "a number above 0, up to 1"),
    "top_k": _integer(-1, 2**31 - 1),
    "min_p": _number(0, 1),
    "max_tokens": _integer(1),
    "min_tokens": _integer(0),
    "seed": _integer(-MAX_INTEGER - 1),
    "presence_penalty": _number(-2, 2),
    "frequency_penalty": _number(-2, 2),
    "repetition_penalty": Rule(_is_above(0), "a number above 0"),
    "logprobs": _integer(0, MAX_LOGPROBS),
    "stop": Rule(_is_list_of(_is_text), "a list of texts that are not empty"),
    "stop_token_ids": Rule(_is_list_of(lambda value: _integer(0).holds(value)), "a list of token ids"),
    "ignore_eos": Rule(lambda value: isinstance(value, bool), "true or false"),
    "skip_special_tokens": Rule(lambda value: isinstance(value, bool), "true or false"),
    "include_stop_str_in_output": Rule(lambda value: isinstance(value, bool), "true or false"),
}
"""The parameters that the engine reads, each as vLLM's SamplingParams calls it."""

Sampling: TypeAlias = Mapping[str, Value]


def sampling_of(parameters: Mapping[str, Value]) -> Sampling:
    """Those of the parameters that are about sampling; raises OmniError naming a wrong one and what is allowed."""
    sampling = {name: parameters[name] for name in RULES if name in parameters}
    for name, value in sampling.items():
        if not RULES[name].holds(value):
            raise refusal(name, value, f"it must be {RULES[name].demand}")
    least, most = sampling.get("min_tokens"), sampling.get("max_tokens")
    if isinstance(least, int) and isinstance(most, int) and least > most:
        raise refusal("min_tokens", least, f"it must not be above max_tokens, which is {most}")
    return sampling


def refusal(name: str, value: object, rule: str) -> OmniError:
    return OmniError(ErrorCode.INVALID_REQUEST, f'parameter "{name}" is {_shortened(value)}; {rule}', name)


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"

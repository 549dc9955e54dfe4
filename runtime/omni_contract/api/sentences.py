"""What pydantic finds wrong with a file, in sentences that name the value and the way out."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from pydantic_core import ErrorDetails

from omni_contract.api.crd import schema
from omni_contract.api.nearest import did_you_mean
from omni_contract.api.problems import Path, Problem
from omni_contract.api.schema import Schema
from omni_contract.api.v1alpha1.base import DNS_LABEL, QUANTITY
from omni_contract.api.v1alpha1.edge import CONNECTOR
from omni_contract.wire.names import API_VERSION, KIND

FORMS: Mapping[str, str] = {
    DNS_LABEL: "use lower-case letters, digits and hyphens, beginning with a letter",
    CONNECTOR: "use letters, digits and hyphens, beginning with a lower-case letter",
    QUANTITY: 'write a quantity like 2, "500m" or "16Gi"',
    r"^[^\s]+$": "it may not hold spaces",
}
KINDS: Mapping[str, str] = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a map of keys and values",
    "model_type": "a map of keys and values",
    "model_attributes_type": "a map of keys and values",
}
HEAD = {"apiVersion": API_VERSION, "kind": KIND}


def sentence(error: ErrorDetails) -> Problem:
    """One finding of pydantic's, where it stands and what to do about it."""
    kind, path = error["type"], error["loc"]
    if kind == "missing":
        return Problem(path[:-1], f'the key "{path[-1]}" is missing')
    if kind in KINDS:
        return Problem(path, f"{_shown(error['input'])} is not {KINDS[kind]}")
    speak = SENTENCES.get(kind)
    return Problem(path, speak(error) if speak else error["msg"])


def key_of(error: ErrorDetails) -> Path:
    """The innermost key that holds what is wrong: the list's key for an item of a list."""
    path = error["loc"]
    while path and isinstance(path[-1], int):
        path = path[:-1]
    return path


def _unknown_key(error: ErrorDetails) -> str:
    key, known = str(error["loc"][-1]), list(_node(error["loc"][:-1]).get("properties", {}))
    hint = did_you_mean(key, known)
    return f'unknown key "{key}"' + (hint or f"; the keys here are: {', '.join(known)}")


def _not_a_choice(error: ErrorDetails) -> str:
    value, key = error["input"], error["loc"][-1]
    if key in HEAD and len(error["loc"]) == 1:
        return f'{_shown(value)} is not served; use "{HEAD[str(key)]}"'
    choices = _node(error["loc"])["enum"]
    hint = did_you_mean(str(value), choices)
    return f"{_shown(value)} is not one of: {', '.join(choices)}{hint}"


def _wrong_form(error: ErrorDetails) -> str:
    pattern = error["ctx"]["pattern"]
    return f"{_shown(error['input'])} has a wrong form; {FORMS.get(pattern, f'it must match {pattern}')}"


def _bound(text: str) -> Callable[[ErrorDetails], str]:
    def speak(error: ErrorDetails) -> str:
        value = error["input"]
        size = len(value) if isinstance(value, str | list | dict) else value
        (limit,) = [bound for key, bound in error["ctx"].items() if key in {"ge", "le", "max_length", "min_length"}]
        return text.format(value=_shown(value), size=size, limit=limit)

    return speak


SENTENCES: Mapping[str, Callable[[ErrorDetails], str]] = {
    "extra_forbidden": _unknown_key,
    "literal_error": _not_a_choice,
    "string_pattern_mismatch": _wrong_form,
    "string_too_long": _bound("{value} has {size} characters; at most {limit} are allowed"),
    "string_too_short": _bound("the text is empty; it needs at least {limit} character"),
    "too_long": _bound("{size} items are too many; at most {limit} are allowed"),
    "too_short": _bound("the list is empty; it needs at least {limit} item"),
    "greater_than_equal": _bound("{value} is too small; the least is {limit}"),
    "less_than_equal": _bound("{value} is too large; the most is {limit}"),
}


def _node(path: Path) -> Schema:
    """The schema at a path; empty for what it does not know."""
    node: Schema = _schema()
    for step in path:
        node = node.get("items", {}) if isinstance(step, int) else node.get("properties", {}).get(step, {})
    return node


@cache
def _schema() -> Schema:
    return schema()


def _shown(value: Any) -> str:
    """A value as the user wrote it, cut short."""
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text if len(text) <= 60 else f"{text[:57]}…"
    return f'"{text}"' if isinstance(value, str) else text

"""Data as it stands in a file becomes an OmniModel, or a list of problems that says all that is wrong with it."""

import copy
import json
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from omni_contract.api.problems import Path, Problem
from omni_contract.api.rules import resource_problems
from omni_contract.api.sentences import key_of, sentence
from omni_contract.api.v1alpha1.resource import OmniModel

FREE_MAPS = frozenset({"sampling", "template"})
"""Fields whose content is the user's own; null means something there."""


def parse(data: JsonValue) -> tuple[OmniModel | None, list[Problem]]:
    """The model if nothing is wrong with it, and otherwise every problem, those of the rules included.

    As strict as the API server: no text for a number, no unknown keys; and like there, an empty key is no key.
    """
    data = _without_empty_keys(data)
    model, errors = _validated(data)
    if model is None:
        return None, [*(sentence(error) for error in errors), *_rules_beside(data, errors)]
    problems = resource_problems(model)
    return (None if problems else model), problems


def _without_empty_keys(data: JsonValue) -> JsonValue:
    if isinstance(data, dict):
        return {
            key: value if key in FREE_MAPS else _without_empty_keys(value)
            for key, value in data.items()
            if value is not None
        }
    return [_without_empty_keys(item) for item in data] if isinstance(data, list) else data


def _validated(data: JsonValue) -> tuple[OmniModel | None, list[ErrorDetails]]:
    try:
        return OmniModel.model_validate_json(json.dumps(data), strict=True, by_alias=True, by_name=False), []
    except ValidationError as error:
        return None, _innermost(error.errors())


def _innermost(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Without what pydantic says of a list or map only because something in it is wrong."""
    around = {error["loc"][:depth] for error in errors for depth in range(len(error["loc"]))}
    return [error for error in errors if error["loc"] not in around]


def _rules_beside(data: JsonValue, errors: Sequence[ErrorDetails]) -> list[Problem]:
    """The rules that the rest of the file breaks, so that the user hears of everything at once.

    The faulty keys are taken out. A rule that looks at an object with a faulty value says nothing: it may be wrong.
    """
    faulty = {key_of(error) for error in errors if error["type"] != "missing"} - {()}
    unknown = {error["loc"] for error in errors if error["type"] == "extra_forbidden"}
    rest = copy.deepcopy(data)
    for key in sorted(faulty, key=len, reverse=True):
        _remove(rest, key)
    model, _ = _validated(rest)
    doubtful = [key[:-1] for key in faulty - unknown]
    return [
        problem
        for problem in (resource_problems(model) if model else ())
        if not any(problem.path[: len(place)] == place for place in doubtful)
    ]


def _remove(data: Any, key: Path) -> None:
    *parents, last = key
    for step in parents:
        data = data[step]
    data.pop(last)

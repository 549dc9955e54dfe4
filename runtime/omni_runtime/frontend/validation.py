"""Request bodies: the base of their models, and what is said about a field that is wrong."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from omni_contract.api.nearest import did_you_mean

LONGEST_VALUE = 40


class ApiRequest(BaseModel):
    """A request body: nothing is coerced, and an unknown field is refused with the name that was probably meant.

    `REFUSED` holds fields of the official SDK that are known but not served, with the reason.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    REFUSED: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for name in data:
                if name not in cls.model_fields:
                    raise refusal(name, _unknown(name, cls.REFUSED, cls.model_fields))
        return data


def refusal(param: str, message: str) -> PydanticCustomError:
    """A problem with a field, in our own words."""
    return PydanticCustomError("refused", "{message}", {"message": message, "param": param})


def first_problem(problems: Sequence[Mapping[str, Any]]) -> tuple[str, str | None]:
    """A sentence about the first problem, and the field at fault. Values are shown only if they are short."""
    problem = problems[0]
    context = problem.get("ctx") or {}
    if problem["type"] == "refused":
        return str(context["message"]), _inside(_path(problem["loc"][1:]), str(context["param"]))
    if problem["type"] == "json_invalid":
        return f"the body is not valid JSON: {context.get('error', '')}, at character {problem['loc'][-1]}", None
    param = _path(problem["loc"][1:])
    if not param:
        return "the body must be a JSON object", None
    if problem["type"] == "missing":
        return f"{param} is required", param
    return f"{param}: {_lower_first(problem['msg'])}, got {shown(problem.get('input'))}", param


def shown(value: object) -> str:
    """A value as JSON, shortened; media in a wrong field must not come back in the answer."""
    return shortened(json.dumps(value, default=str, ensure_ascii=True), LONGEST_VALUE)


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _unknown(name: str, refused: Mapping[str, str], known: Mapping[str, object]) -> str:
    if name in refused:
        return f"{name} is not supported: {refused[name]}"
    return f'unknown field "{shortened(name, LONGEST_VALUE)}"{did_you_mean(name[:200], known)}'


def _path(parts: Sequence[int | str]) -> str:
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _inside(where: str, field: str) -> str:
    """A field that a validator has named, which may be that of the field itself or of the model around it."""
    if not where or where == field or where.endswith(f".{field}"):
        return where or field
    return f"{where}.{field}"


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]

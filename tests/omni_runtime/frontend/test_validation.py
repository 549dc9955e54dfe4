"""What is said about a body that is wrong."""

from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, ValidationError, field_validator

from omni_runtime.frontend.validation import ApiRequest, first_problem, refusal, shown


class Part(BaseModel):
    kind: str


class Order(ApiRequest):
    REFUSED: ClassVar = {"later": "it waits for storage"}

    name: str
    count: int = 1
    parts: tuple[Part, ...] = ()

    @field_validator("name")
    @classmethod
    def _no_shouting(cls, name: str) -> str:
        if name.isupper():
            raise refusal("name", f'name: do not shout, got "{name}"')
        return name


def problem(body: Any) -> tuple[str, str | None]:
    with pytest.raises(ValidationError) as caught:
        Order.model_validate(body)
    return first_problem([{**error, "loc": ("body", *error["loc"])} for error in caught.value.errors()])


def test_an_unknown_field_is_named_with_the_nearest_known_one() -> None:
    assert problem({"name": "a", "cuont": 2}) == ('unknown field "cuont" (did you mean "count"?)', "cuont")
    assert problem({"name": "a", "zzz": 2}) == ('unknown field "zzz"', "zzz")


def test_a_field_that_is_not_served_says_why() -> None:
    assert problem({"name": "a", "later": 1}) == ("later is not supported: it waits for storage", "later")


def test_nothing_is_coerced() -> None:
    assert problem({"name": "a", "count": "2"}) == ('count: input should be a valid integer, got "2"', "count")


def test_a_missing_field_is_required() -> None:
    assert problem({}) == ("name is required", "name")


def test_a_field_inside_a_list_has_its_path() -> None:
    assert problem({"name": "a", "parts": ({"kind": "x"}, {"kind": 7})})[1] == "parts[1].kind"


def test_our_own_words_are_used_as_they_are() -> None:
    assert problem({"name": "LOUD"}) == ('name: do not shout, got "LOUD"', "name")


@pytest.mark.parametrize("body", [[], "text", None, 3])
def test_a_body_must_be_an_object(body: Any) -> None:
    assert problem(body) == ("the body must be a JSON object", None)


def test_long_values_are_shortened() -> None:
    assert shown("x" * 1000) == '"' + "x" * 39 + "…"

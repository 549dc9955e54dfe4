"""What was asked of an admin port: which route, with which fields. Pure: method and target in, a query out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit

from omni_runtime.administration.listener import HttpError

T = TypeVar("T")


class Route(NamedTuple, Generic[T]):
    """`fields` are those that the query may have."""

    method: str
    answer: T
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Query:
    fields: Mapping[str, Sequence[str]]

    def all(self, name: str) -> Sequence[str]:
        """Each value of a field that may be repeated."""
        return self.fields.get(name, ())

    def number(self, name: str, default: Any, kind: type[Any] = float) -> Any:
        """Of a field that is given twice, the last counts."""
        if name not in self.fields:
            return default
        text = self.fields[name][-1]
        try:
            number = kind(text)
        except ValueError:
            number = -1
        if not 0 <= number < float("inf"):
            raise invalid(f"{name} is {text!r}; it must be a number from 0")
        return number


def invalid(message: str) -> HttpError:
    return HttpError(HTTPStatus.BAD_REQUEST, "invalid_request", message)


def routed(method: str, target: str, routes: Mapping[str, Route[T]]) -> tuple[T, Query]:
    """What answers, and the query. HttpError if there is no such route, or not in that way."""
    url = urlsplit(target)
    if url.path not in routes:
        known = ", ".join(routes)
        raise HttpError(HTTPStatus.NOT_FOUND, "not_found", f"there is no {url.path}; there is {known}")
    route = routes[url.path]
    if method != route.method:
        text = f"{url.path} takes {route.method}, not {method}"
        raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", text)
    fields = parse_qs(url.query, keep_blank_values=True)
    for name in fields:
        if name not in route.fields:
            raise invalid(f'{url.path} has no field "{name}"; it takes {", ".join(route.fields) or "none"}')
    return route.answer, Query(fields)

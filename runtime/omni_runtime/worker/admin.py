"""The admin port: what `control.py` can do, over plain HTTP, for people with curl. Off unless a port is given."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from omni_runtime.administration.listener import Answer, HttpError, envelope
from omni_runtime.worker.control import Control, ControlError, Refusal

DEFAULT_SLEEP_TIMEOUT_S = 60.0
DEFAULT_DRAIN_TIMEOUT_S = 60.0
DEFAULT_PROFILE_STEPS = 10

STATUS: Mapping[Refusal, HTTPStatus] = {
    Refusal.INVALID: HTTPStatus.BAD_REQUEST,
    Refusal.WRONG_STATE: HTTPStatus.CONFLICT,
    Refusal.STILL_BUSY: HTTPStatus.CONFLICT,
    Refusal.NOT_SUPPORTED: HTTPStatus.NOT_IMPLEMENTED,
    Refusal.FAILED: HTTPStatus.INTERNAL_SERVER_ERROR,
}

Query: TypeAlias = Mapping[str, str]


async def _sleep(control: Control, query: Query) -> Answer:
    freed = await control.sleep(_number(query, "level", 1, int), _number(query, "timeout", DEFAULT_SLEEP_TIMEOUT_S))
    return {"freed_bytes": freed}


async def _wake(control: Control, query: Query) -> Answer:
    await control.wake()
    return {}


async def _start_profile(control: Control, query: Query) -> Answer:
    return {"trace": str(await control.start_profile(_number(query, "steps", DEFAULT_PROFILE_STEPS, int)))}


async def _stop_profile(control: Control, query: Query) -> Answer:
    profile = await control.stop_profile()
    return {"trace": str(profile.trace), "steps": profile.steps}


async def _reset_cache(control: Control, query: Query) -> Answer:
    return {"entries": await control.reset_cache()}


async def _drain(control: Control, query: Query) -> Answer:
    return {"left_running": await control.drain(_number(query, "timeout", DEFAULT_DRAIN_TIMEOUT_S))}


async def _stats(control: Control, query: Query) -> Answer:
    return asdict(control.stats())


Route: TypeAlias = Callable[[Control, Query], Awaitable[Answer]]

ROUTES: Mapping[str, tuple[str, Route, tuple[str, ...]]] = {
    "/sleep": ("POST", _sleep, ("level", "timeout")),
    "/wake": ("POST", _wake, ()),
    "/profile/start": ("POST", _start_profile, ("steps",)),
    "/profile/stop": ("POST", _stop_profile, ()),
    "/cache/reset": ("POST", _reset_cache, ()),
    "/drain": ("POST", _drain, ("timeout",)),
    "/stats": ("GET", _stats, ()),
}
"""Method, what answers, and the query's fields, by path."""


async def answer(control: Control, method: str, target: str) -> tuple[HTTPStatus, Answer]:
    """The whole answer to one request, whatever comes of it."""
    try:
        return HTTPStatus.OK, await _routed(control, method, target)
    except HttpError as error:
        return error.answer
    except ControlError as error:
        status = STATUS[error.refusal]
        return status, envelope(status, error.refusal, str(error))


async def _routed(control: Control, method: str, target: str) -> Answer:
    url = urlsplit(target)
    if url.path not in ROUTES:
        known = ", ".join(ROUTES)
        raise HttpError(HTTPStatus.NOT_FOUND, "not_found", f"there is no {url.path}; there is {known}")
    wanted, route, fields = ROUTES[url.path]
    if method != wanted:
        text = f"{url.path} takes {wanted}, not {method}"
        raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", text)
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    for name in query:
        if name not in fields:
            raise ControlError(
                Refusal.INVALID, f'{url.path} has no field "{name}"; it takes {", ".join(fields) or "none"}'
            )
    return await route(control, query)


def _number(query: Query, name: str, default: Any, kind: type[Any] = float) -> Any:
    text = query.get(name)
    try:
        number = default if text is None else kind(text)
    except ValueError:
        number = -1
    if not 0 <= number < float("inf"):
        raise ControlError(Refusal.INVALID, f"{name} is {text!r}; it must be a number from 0")
    return number

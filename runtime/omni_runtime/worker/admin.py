"""The admin port: what `control.py` can do, over plain HTTP, for people with curl. Off unless a port is given."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import TypeAlias

from omni_runtime.administration.calls import DEFAULT_STEPS, DEFAULT_TIMEOUT_S
from omni_runtime.administration.listener import Answer, HttpError, envelope
from omni_runtime.administration.queries import Query, Route, routed
from omni_runtime.worker.control import Control, ControlError, Refusal

STATUS: Mapping[Refusal, HTTPStatus] = {
    Refusal.INVALID: HTTPStatus.BAD_REQUEST,
    Refusal.WRONG_STATE: HTTPStatus.CONFLICT,
    Refusal.STILL_BUSY: HTTPStatus.CONFLICT,
    Refusal.NOT_SUPPORTED: HTTPStatus.NOT_IMPLEMENTED,
    Refusal.FAILED: HTTPStatus.INTERNAL_SERVER_ERROR,
}


async def _sleep(control: Control, query: Query) -> Answer:
    freed = await control.sleep(query.number("level", 1, int), query.number("timeout", DEFAULT_TIMEOUT_S))
    return {"freed_bytes": freed}


async def _wake(control: Control, query: Query) -> Answer:
    await control.wake()
    return {}


async def _start_profile(control: Control, query: Query) -> Answer:
    return {"trace": str(await control.start_profile(query.number("steps", DEFAULT_STEPS, int)))}


async def _stop_profile(control: Control, query: Query) -> Answer:
    profile = await control.stop_profile()
    return {"trace": str(profile.trace), "steps": profile.steps}


async def _reset_cache(control: Control, query: Query) -> Answer:
    return {"entries": await control.reset_cache()}


async def _drain(control: Control, query: Query) -> Answer:
    return {"left_running": await control.drain(query.number("timeout", DEFAULT_TIMEOUT_S))}


async def _stats(control: Control, query: Query) -> Answer:
    return asdict(control.stats())


Answers: TypeAlias = Callable[[Control, Query], Awaitable[Answer]]

ROUTES: Mapping[str, Route[Answers]] = {
    "/sleep": Route("POST", _sleep, ("level", "timeout")),
    "/wake": Route("POST", _wake),
    "/profile/start": Route("POST", _start_profile, ("steps",)),
    "/profile/stop": Route("POST", _stop_profile),
    "/cache/reset": Route("POST", _reset_cache),
    "/drain": Route("POST", _drain, ("timeout",)),
    "/stats": Route("GET", _stats),
}


async def answer(control: Control, method: str, target: str) -> tuple[HTTPStatus, Answer]:
    """The whole answer to one request, whatever comes of it."""
    try:
        answers, query = routed(method, target, ROUTES)
        return HTTPStatus.OK, await answers(control, query)
    except HttpError as error:
        return error.answer
    except ControlError as error:
        status = STATUS[error.refusal]
        return status, envelope(status, error.refusal, str(error))

"""The one error envelope of every answer that is not a success, and how each kind of failure becomes one."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from omni_contract.wire.errors import HTTP_STATUS, ErrorCode, OmniError
from omni_runtime.frontend.validation import first_problem, shortened
from omni_runtime.orchestrator import OverloadedError

LONGEST_MESSAGE = 600
"""Characters; an answer stays below 4 KiB even if each of them has to be escaped."""
LONGEST_PARAM = 60
RETRY_UNAVAILABLE_S = 5

TYPES: Mapping[int, str] = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class ErrorBody(BaseModel):
    message: str
    type: str
    param: str | None
    code: str


class ErrorEnvelope(BaseModel):
    error: ErrorBody


def envelope(status: int, code: str, message: str, param: str | None = None) -> ErrorEnvelope:
    kind = TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    field = None if param is None else shortened(param, LONGEST_PARAM)
    return ErrorEnvelope(
        error=ErrorBody(message=shortened(message, LONGEST_MESSAGE), type=kind, param=field, code=code)
    )


def error_body(exc: OmniError) -> ErrorBody:
    """The failure of a part of an answer that is a success on the whole."""
    return envelope(HTTP_STATUS[exc.code], exc.code, exc.message, exc.param).error


def error_response(exc: OmniError) -> JSONResponse:
    status = HTTP_STATUS[exc.code]
    body = envelope(status, exc.code, exc.message, exc.param)
    return JSONResponse(body.model_dump(), status, headers=_headers(exc, status))


def error_event(exc: OmniError) -> str:
    """The end of a streamed answer that cannot go on, as the SDK reads it."""
    body = envelope(HTTP_STATUS[exc.code], exc.code, exc.message, exc.param)
    return f"event: error\ndata: {body.model_dump_json()}\n\n"


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route's documentation says about these statuses; by the default it leaves out FastAPI's own 422."""
    documented: tuple[int | str, ...] = (*statuses, "default")
    return {status: {"model": ErrorEnvelope, "description": "Error"} for status in documented}


def add_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(OmniError, _omni_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)


async def _omni_error(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, OmniError)
    return error_response(exc)


async def _validation_error(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, RequestValidationError)
    problems: Sequence[Any] = exc.errors()
    message, param = first_problem(problems)
    return error_response(OmniError(ErrorCode.INVALID_REQUEST, message, param))


async def _http_error(request: Request, exc: Exception) -> JSONResponse:
    """What the framework itself refuses: no such route, wrong method, a body that cannot be parsed."""
    assert isinstance(exc, HTTPException)
    code, message = {
        404: (ErrorCode.NOT_FOUND.value, f"there is no {request.url.path}"),
        405: ("method_not_allowed", f"{request.url.path} does not take {request.method}"),
    }.get(exc.status_code, (ErrorCode.INVALID_REQUEST.value, str(exc.detail)))
    body = envelope(exc.status_code, code, message)
    return JSONResponse(body.model_dump(), exc.status_code, headers=exc.headers)


def _headers(exc: OmniError, status: int) -> dict[str, str]:
    if isinstance(exc, OverloadedError):
        return {"retry-after": str(exc.retry_after_s)}
    if status in (429, 503):
        return {"retry-after": str(RETRY_UNAVAILABLE_S)}
    if status == 401:
        return {"www-authenticate": "Bearer"}
    return {}

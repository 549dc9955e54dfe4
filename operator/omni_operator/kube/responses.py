"""Turns answers of the API server into values or named errors."""

import json
from collections.abc import Mapping

from omni_operator.errors import ApiError, Conflict, Expired, NamespaceEnding, NotFound, Refused, Unavailable
from omni_operator.objects import Manifest

ERRORS: Mapping[int, type[ApiError]] = {
    400: Refused,
    403: Refused,
    404: NotFound,
    409: Conflict,
    410: Expired,
    413: Refused,
    422: Refused,
    429: Unavailable,
}


def object_of(status: int, body: bytes, retry_after: str | None = None) -> Manifest:
    """The object in a successful answer; raises the ApiError that the status stands for."""
    if 200 <= status < 300:
        decoded: Manifest = json.loads(body)
        return decoded
    raise error_of(status, _status_object(body), retry_after)


def error_of(status: int, details: Manifest, retry_after: str | None = None) -> ApiError:
    message = str(details.get("message") or f"HTTP status {status}")
    if status == 403 and _is_namespace_ending(details):
        return NamespaceEnding(status, message)
    wait_s = float(retry_after) if retry_after and retry_after.isdigit() else None
    return ERRORS.get(status, Unavailable)(status, message, wait_s)


def _status_object(body: bytes) -> Manifest:
    """The API server explains itself in a Status object; a proxy in between may answer anything."""
    try:
        decoded = json.loads(body)
    except ValueError:
        decoded = None
    return decoded if isinstance(decoded, dict) else {"message": body[:200].decode(errors="replace")}


def _is_namespace_ending(details: Manifest) -> bool:
    causes = (details.get("details") or {}).get("causes") or []
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)

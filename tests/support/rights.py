"""Rights granted by roles against rights used, as the API server's audit log shows them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.audit import Request, requests

CREATED = 201
FORBIDDEN = 403


@dataclass(frozen=True, order=True)
class Right:
    group: str
    resource: str
    verb: str


def granted(roles: Iterable[dict[str, Any]]) -> set[Right]:
    return {
        Right(group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(log: Path, user: str) -> set[Right]:
    asked = [request for request in _of(log, user) if request.resource]
    return {Right(request.group, request.resource, verb) for request in asked for verb in _verbs(request)}


def refused(log: Path, user: str) -> list[Request]:
    """What the user asked for without having the right."""
    return [request for request in _of(log, user) if request.status == FORBIDDEN]


def account(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def _verbs(request: Request) -> tuple[str, ...]:
    """Server-side apply is a patch in the log; where it makes a new object, the right to create is checked too."""
    return ("patch", "create") if request.verb == "patch" and request.status == CREATED else (request.verb,)


def _of(log: Path, user: str) -> list[Request]:
    return [request for request in requests(log) if request.user == user]

"""The audit log: what the API server writes down about each request, and how a test reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


@dataclass(frozen=True)
class Request:
    """One finished request. `resource` is `pods` or `omnimodels/status`; empty for paths such as /readyz."""

    user: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    status: int
    stage: str
    user_agent: str
    received_at: str


def write_policy(path: Path) -> Path:
    path.write_text(json.dumps(POLICY, indent=2) + "\n")
    return path


def requests(log: Path) -> Iterator[Request]:
    """Every finished request in the order of the log; a line that the server has not finished writing is left out."""
    with log.open() as lines:
        for line in lines:
            if line.endswith("\n"):
                yield parse(line)


def parse(line: str) -> Request:
    event = json.loads(line)
    target = event.get("objectRef", {})
    subresource = target.get("subresource", "")
    return Request(
        user=event["user"].get("username", ""),
        verb=event["verb"],
        group=target.get("apiGroup", ""),
        resource=target.get("resource", "") + (f"/{subresource}" if subresource else ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        status=event.get("responseStatus", {}).get("code", 0),
        stage=event["stage"],
        user_agent=event.get("userAgent", ""),
        received_at=event["requestReceivedTimestamp"],
    )

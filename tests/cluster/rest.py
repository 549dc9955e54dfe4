"""The few calls that setting a cluster up needs, as plain HTTPS with a client certificate and no client library."""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.cluster.certificates import Pair
from tests.cluster.errors import ClusterError

CALL_TIMEOUT_S = 10


class CallRefused(ClusterError):
    def __init__(self, method: str, path: str, status: int, body: str) -> None:
        self.status = status
        super().__init__(f"{method} {path} was answered with {status}: {body.strip()[:500]}")


@dataclass(frozen=True)
class Rest:
    """Calls one API server on the loopback address."""

    port: int
    authority: Path
    credentials: Pair

    def get(self, path: str) -> Any:
        return json.loads(self.call("GET", path))

    def post(self, path: str, body: object) -> Any:
        return json.loads(self.call("POST", path, body))

    def delete(self, path: str) -> None:
        self.call("DELETE", path)

    def is_ready(self) -> bool:
        """Whether the server's own checks all pass; False too while nothing listens."""
        try:
            return self.call("GET", "/readyz") == "ok"
        except (OSError, http.client.HTTPException, CallRefused):
            return False

    def call(self, method: str, path: str, body: object = None) -> str:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=CALL_TIMEOUT_S, context=self._tls)
        try:
            connection.request(
                method,
                path,
                body=None if body is None else json.dumps(body),
                headers={"Content-Type": "application/json", "Accept": "application/json"},
            )
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= 300:
            raise CallRefused(method, path, answer.status, text)
        return text

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(self.credentials.certificate, self.credentials.key)
        return context

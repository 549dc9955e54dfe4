"""The calls that the operator makes, on top of the official client. Every failure is one of ours from `errors`."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp
from kubernetes.aio.client import ApiClient

from omni_contract.wire.names import FIELD_MANAGER
from omni_operator.errors import Conflict, NotFound, Unavailable
from omni_operator.kube.responses import error_of, object_of
from omni_operator.metrics import API_CALLS
from omni_operator.objects import Kind, Manifest, kind_of

REQUEST_LIMITS = aiohttp.ClientTimeout(total=15, sock_connect=5)

WATCH_SECONDS = 290
"""Load balancers cut idle streams; the server ends a watch before they do."""

WATCH_LIMITS = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=90)
"""The server sends a bookmark about every minute, so a silent stream is a dead one."""

PAGE_SIZE = 500

LENDER = f"{FIELD_MANAGER}-lends"
"""A field manager that asks for nothing of its own: it keeps what we drop until somebody else takes it."""


@dataclass(frozen=True)
class Listing:
    items: list[Manifest]
    resource_version: str


@dataclass(frozen=True)
class WatchEvent:
    type: str
    object: Manifest


@dataclass(frozen=True)
class Scope:
    """Which objects of a kind a list or watch covers."""

    kind: Kind
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""

    @property
    def selectors(self) -> dict[str, str]:
        return {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}

    @property
    def path(self) -> str:
        return self.kind.path(self.namespace)


class Writer(Protocol):
    """What a reconcile pass asks of the API server."""

    async def peek(self, kind: Kind, namespace: str, name: str) -> Manifest:
        """The object as the server's cache has it, which costs its store nothing. Raises NotFound."""

    async def apply(self, manifest: Manifest, subresource: str = "") -> Manifest:
        """Server-side apply under our field manager; gives the object as it is now."""

    async def lend(self, manifest: Manifest) -> Manifest:
        """Server-side apply under a second field manager, for fields that we shall drop and that must stay.

        Raises Conflict if they have another value by now.
        """

    async def delete(self, manifest: Manifest) -> None:
        """Deletes this very object, not a later one of the same name. One that is gone already is no error."""


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = "application/json"
    limits: aiohttp.ClientTimeout = REQUEST_LIMITS


class KubeApi:
    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def read(self, kind: Kind, namespace: str, name: str) -> Manifest:
        return await self._object(_Request("GET", kind.path(namespace, name)))

    async def peek(self, kind: Kind, namespace: str, name: str) -> Manifest:
        return await self._object(_Request("GET", kind.path(namespace, name), {"resourceVersion": "0"}))

    async def apply(self, manifest: Manifest, subresource: str = "") -> Manifest:
        path = _path_of(manifest) + (f"/{subresource}" if subresource else "")
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self._object(_Request("PATCH", path, query, manifest, "application/apply-patch+yaml"))

    async def lend(self, manifest: Manifest) -> Manifest:
        query = {"fieldManager": LENDER}
        return await self._object(
            _Request("PATCH", _path_of(manifest), query, manifest, "application/apply-patch+yaml")
        )

    async def delete(self, manifest: Manifest) -> None:
        options = {"preconditions": {"uid": manifest["metadata"]["uid"]}, "propagationPolicy": "Background"}
        try:
            await self._object(_Request("DELETE", _path_of(manifest), body=options))
        except (NotFound, Conflict):
            return

    async def create(self, manifest: Manifest) -> Manifest:
        path = kind_of(manifest).path(manifest["metadata"]["namespace"])
        return await self._object(_Request("POST", path, body=manifest))

    async def replace(self, manifest: Manifest) -> Manifest:
        """Fails with Conflict if the object changed since it was read."""
        return await self._object(_Request("PUT", _path_of(manifest), body=manifest))

    async def list(self, scope: Scope) -> Listing:
        """Everything in the scope, page by page."""
        items: list[Manifest] = []
        query = {**scope.selectors, "limit": str(PAGE_SIZE)}
        while True:
            page = await self._object(_Request("GET", scope.path, query))
            kind = {"apiVersion": scope.kind.api_version, "kind": scope.kind.name}
            items += [{**kind, **item} for item in page["items"]]
            token = page["metadata"].get("continue")
            if not token:
                return Listing(items, page["metadata"]["resourceVersion"])
            query = {**query, "continue": token}

    async def watch(self, scope: Scope, resource_version: str) -> AsyncIterator[WatchEvent]:
        """Ends when the server ends the stream; raises Expired if it no longer knows the version."""
        query = {
            **scope.selectors,
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
            "watch": "true",
        }
        async with self._send(_Request("GET", scope.path, query, limits=WATCH_LIMITS)) as response:
            if response.status != 200:
                object_of(response.status, await response.read(), response.headers.get("Retry-After"))
            async for line in _lines(response):
                yield _event(line)

    async def _object(self, request: _Request) -> Manifest:
        async with self._send(request) as response:
            content = await response.read()
            API_CALLS.labels(request.method, response.status).inc()
            return object_of(response.status, content, response.headers.get("Retry-After"))

    @asynccontextmanager
    async def _send(self, request: _Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """Any trouble on the way is Unavailable, for whoever asks again later."""
        try:
            method, url, headers, *_ = await self._client.param_serialize(
                request.method,
                request.path,
                query_params=[(name, value) for name, value in request.query.items() if value],
                header_params={"Accept": "application/json", "Content-Type": request.content_type},
                auth_settings=["BearerToken"],
            )
            # The body is plain JSON values already, so it skips the client's search for objects to convert.
            answer = await self._client.call_api(method, url, headers, request.body, _request_timeout=request.limits)
            async with answer.response as response:
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise Unavailable(0, f"{request.method} {request.path}: {problem or type(problem).__name__}") from problem


def _path_of(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return kind_of(manifest).path(metadata["namespace"], metadata["name"])


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """An object may be longer than what the reader's own line splitting allows."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line


def _event(line: bytes) -> WatchEvent:
    decoded = json.loads(line)
    if decoded["type"] == "ERROR":
        raise error_of(int(decoded["object"].get("code", 500)), decoded["object"])
    return WatchEvent(decoded["type"], decoded["object"])

"""An API server that lists and watches what a test puts into it, and can be away."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


class FakeApiServer:
    """Objects by path of their collection and name. A watch gets each change since the version that it names."""

    def __init__(self) -> None:
        self.url = ""
        self.lists: list[tuple[str, dict[str, str]]] = []
        self.is_away = False
        self._objects: dict[str, dict[str, Any]] = {}
        self._watches: list[tuple[str, asyncio.Queue[dict[str, Any] | None]]] = []
        self._history: list[tuple[int, str, dict[str, Any]]] = []
        self._version = 1

    def put(self, collection: str, item: dict[str, Any]) -> None:
        items = self._objects.setdefault(collection, {})
        name = item["metadata"]["name"]
        kind = "MODIFIED" if name in items else "ADDED"
        items[name] = self._versioned(item)
        self._tell(collection, {"type": kind, "object": items[name]})

    def delete(self, collection: str, name: str) -> None:
        item = self._objects[collection].pop(name)
        self._tell(collection, {"type": "DELETED", "object": self._versioned(item)})

    def end_watches(self, error: dict[str, Any] | None = None) -> None:
        """Ends every watch, with an error event if one is given."""
        for _, queue in self._watches:
            if error is not None:
                queue.put_nowait({"type": "ERROR", "object": error})
            queue.put_nowait(None)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["FakeApiServer"]:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._get)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            self.end_watches()
            await runner.cleanup()

    async def _get(self, request: web.Request) -> web.StreamResponse:
        if self.is_away:
            raise web.HTTPServiceUnavailable
        if request.query.get("watch") == "true":
            return await self._watch(request)
        self.lists.append((request.path, dict(request.query)))
        items = [item for item in self._objects.get(request.path, {}).values() if _is_asked_for(item, request)]
        return web.json_response({"items": items, "metadata": {"resourceVersion": str(self._version)}})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        since = int(request.query["resourceVersion"])
        for version, collection, event in self._history:
            if collection == request.path and version > since:
                queue.put_nowait(event)
        entry = (request.path, queue)
        self._watches.append(entry)
        try:
            while (event := await queue.get()) is not None:
                if event["type"] == "ERROR" or _is_asked_for(event["object"], request):
                    await response.write(json.dumps(event).encode() + b"\n")
        finally:
            self._watches.remove(entry)
        return response

    def _versioned(self, item: dict[str, Any]) -> dict[str, Any]:
        self._version += 1
        return {**item, "metadata": {**item["metadata"], "resourceVersion": str(self._version)}}

    def _tell(self, collection: str, event: dict[str, Any]) -> None:
        self._history.append((self._version, collection, event))
        for path, queue in self._watches:
            if path == collection:
                queue.put_nowait(event)


def _is_asked_for(item: dict[str, Any], request: web.Request) -> bool:
    """Understands `metadata.name=NAME` and `LABEL in (A,B)`."""
    metadata = item["metadata"]
    _, _, name = request.query.get("fieldSelector", "").partition("metadata.name=")
    label, _, values = request.query.get("labelSelector", "").partition(" in ")
    return (not name or metadata["name"] == name) and (
        not label or metadata.get("labels", {}).get(label) in values.strip("()").split(",")
    )

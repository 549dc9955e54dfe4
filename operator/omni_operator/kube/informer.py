"""Keeps the store in step with the API server: list, then watch, and list again whenever the stream cannot go on."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from typing import Protocol

from omni_operator.errors import ApiError, Expired
from omni_operator.kube.api import Listing, Scope, WatchEvent
from omni_operator.kube.store import Store
from omni_operator.metrics import RELISTS, WATCH_SEEN

logger = logging.getLogger(__name__)

FIRST_BACKOFF_S = 0.5
LAST_BACKOFF_S = 30.0


class Source(Protocol):
    async def list(self, scope: Scope) -> Listing: ...

    def watch(self, scope: Scope, resource_version: str) -> AsyncIterator[WatchEvent]: ...


class Informer:
    """Of one kind in one scope. `is_synced` is set once the first list is in the store."""

    def __init__(self, source: Source, scope: Scope, store: Store) -> None:
        self._source, self._scope, self._store = source, scope, store
        self._version = ""
        self._backoff_s = FIRST_BACKOFF_S
        self.is_synced = asyncio.Event()

    @property
    def name(self) -> str:
        return self._scope.path

    async def run(self) -> None:
        """Until cancelled: an API server that is away for an hour is an hour of waiting, not a failure."""
        while True:
            try:
                await self._follow()
                self._backoff_s = FIRST_BACKOFF_S
            except Expired:
                self._version = ""
            except ApiError as problem:
                logger.warning("watch of %s: %s; again in %.1f s", self.name, problem, self._backoff_s)
                self._version = ""
                await asyncio.sleep(self._backoff_s * random.uniform(0.5, 1.0))
                self._backoff_s = min(self._backoff_s * 2, LAST_BACKOFF_S)

    async def _follow(self) -> None:
        """One stream, from where the last one ended."""
        if not self._version:
            await self._list()
        async for event in self._source.watch(self._scope, self._version):
            self._backoff_s = FIRST_BACKOFF_S
            self._take(event)

    async def _list(self) -> None:
        listing = await self._source.list(self._scope)
        self._store.replace(self._scope.kind, self._scope.namespace, listing.items, listing.resource_version)
        self._version = listing.resource_version
        RELISTS.labels(self._scope.kind.name).inc()
        self._mark_seen()
        self.is_synced.set()

    def _take(self, event: WatchEvent) -> None:
        self._version = event.object["metadata"]["resourceVersion"]
        self._mark_seen()
        if event.type == "DELETED":
            self._store.remove(event.object)
        elif event.type != "BOOKMARK":
            self._store.put(event.object)

    def _mark_seen(self) -> None:
        WATCH_SEEN.labels(self._scope.kind.name).set_to_current_time()

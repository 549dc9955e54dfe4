"""How the store is kept in step with a server whose streams end, break, expire and skip."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from omni_operator.errors import ApiError, Expired, Unavailable
from omni_operator.kube.api import Listing, Scope, WatchEvent
from omni_operator.kube.informer import Informer
from omni_operator.kube.store import Store
from omni_operator.objects import SERVICE, Manifest, ModelKey

KEY = ModelKey("team", "toy")


def a_service(name: str, version: int) -> Manifest:
    metadata = {"name": name, "namespace": "team", "labels": {"serving.omnimodel.dev/model": "toy"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {**metadata, "resourceVersion": str(version)}}


def listing(version: int, *services: Manifest) -> Listing:
    return Listing(list(services), str(version))


def event(kind: str, service: Manifest) -> WatchEvent:
    return WatchEvent(kind, service)


@dataclass
class Script:
    """A server that gives one list or stream after another; an error in a stream is raised there. Then it is silent."""

    lists: list[Listing | ApiError]
    streams: list[list[WatchEvent | ApiError]]
    watched_from: list[str] = field(default_factory=list)
    is_over: asyncio.Event = field(default_factory=asyncio.Event)

    async def list(self, scope: Scope) -> Listing:
        answer = self.lists.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def watch(self, scope: Scope, resource_version: str) -> AsyncIterator[WatchEvent]:
        self.watched_from.append(resource_version)
        if not self.streams:
            self.is_over.set()
            await asyncio.Event().wait()
        for item in self.streams.pop(0):
            if isinstance(item, ApiError):
                raise item
            yield item


async def followed(script: Script) -> list[str]:
    """The services that the store holds after the whole script."""
    store = Store(lambda key, kind: None)
    task = asyncio.create_task(Informer(script, Scope(SERVICE), store).run())
    async with asyncio.timeout(10):
        await script.is_over.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return [child["metadata"]["name"] for child in store.observe(KEY).children]


async def test_a_list_and_its_stream_fill_the_store() -> None:
    script = Script(
        [listing(10, a_service("a", 5))],
        [[event("ADDED", a_service("b", 11)), event("DELETED", a_service("a", 12))]],
    )
    assert await followed(script) == ["b"]
    assert script.watched_from == ["10", "12"]


async def test_a_stream_that_ends_goes_on_from_the_last_bookmark() -> None:
    script = Script([listing(10)], [[event("BOOKMARK", a_service("", 40))], []])
    await followed(script)
    assert script.watched_from == ["10", "40", "40"]


@pytest.mark.case("operator:M01")
@pytest.mark.case("operator:M02")
@pytest.mark.parametrize("where", ["at the watch", "in the stream"])
async def test_an_expired_version_is_listed_anew_and_deletions_are_noticed(where: str) -> None:
    expired = Expired(410, "too old resource version")
    first = [expired] if where == "at the watch" else [event("ADDED", a_service("c", 11)), expired]
    gone = ("a", "b", "c")
    script = Script([listing(10, a_service("a", 5), a_service("b", 6)), listing(20, a_service("d", 15))], [first])
    names = await followed(script)
    assert names == ["d"]
    assert not set(gone) & set(names)


@pytest.mark.case("operator:M01")
async def test_an_expired_list_is_asked_for_again() -> None:
    assert await followed(Script([Expired(410, "page is gone"), listing(10, a_service("a", 5))], [])) == ["a"]


@pytest.mark.case("operator:A13")
async def test_an_unreachable_server_is_waited_for() -> None:
    script = Script([Unavailable(0, "connection refused"), listing(10, a_service("a", 5))], [])
    assert await followed(script) == ["a"]


async def test_a_broken_stream_is_listed_anew() -> None:
    script = Script([listing(10, a_service("a", 5)), listing(20)], [[Unavailable(0, "reset by peer")]])
    assert await followed(script) == []

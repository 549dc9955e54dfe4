"""A small API server in memory, for the operator: server-side apply of one manager, versions, owners, calls made.

`feeds` a store like informers do, at once, or on `deliver` if it `lags`.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

from omni_operator.errors import Conflict, NotFound
from omni_operator.kube.api import Listing, Scope, WatchEvent
from omni_operator.kube.store import Store
from omni_operator.merge import MERGE_KEYS
from omni_operator.objects import DEPLOYMENT, Kind, Manifest, controller_of, kind_of

Place = tuple[Kind, str, str]


@dataclass(frozen=True)
class Call:
    verb: str
    kind: str
    name: str

    @property
    def is_write(self) -> bool:
        return self.verb != "read"


@dataclass
class FakeKube:
    store: Store | None = None
    lags: bool = False
    before_call: Callable[[Call], None] = lambda call: None
    """May raise, in place of the call."""
    calls: list[Call] = field(default_factory=list)
    _objects: dict[Place, Manifest] = field(default_factory=dict)
    _applied: dict[Place, Manifest] = field(default_factory=dict)
    _lent: set[Place] = field(default_factory=set)
    """Deployments whose replicas stay when they are no longer asked for."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(100))
    _watches: list[tuple[Kind, asyncio.Queue[WatchEvent]]] = field(default_factory=list)
    _undelivered: list[tuple[bool, Manifest]] = field(default_factory=list)

    # ---- what the operator calls

    async def read(self, kind: Kind, namespace: str, name: str) -> Manifest:
        self._note("read", kind, name)
        return copy.deepcopy(self._get((kind, namespace, name)))

    async def peek(self, kind: Kind, namespace: str, name: str) -> Manifest:
        return await self.read(kind, namespace, name)

    async def apply(self, manifest: Manifest, subresource: str = "") -> Manifest:
        place = place_of(manifest)
        self._note("apply" + (f" {subresource}" if subresource else ""), place[0], place[2])
        if subresource:
            return self._change(place, {**self._get(place), subresource: manifest[subresource]})
        live = self._objects.get(place)
        uid = manifest["metadata"].get("uid")
        if uid is not None and (live is None or live["metadata"]["uid"] != uid):
            raise Conflict(409, f"the uid in the precondition ({uid}) is not the object's")
        merged = _applied(live or {}, self._applied.get(place, {}), manifest)
        if place[0] is DEPLOYMENT and "replicas" not in merged["spec"]:
            kept = live["spec"]["replicas"] if live is not None and place in self._lent else 1
            merged["spec"] = {**merged["spec"], "replicas": kept}
        self._applied[place] = copy.deepcopy(manifest)
        return self._change(place, merged)

    async def lend(self, manifest: Manifest) -> Manifest:
        place = place_of(manifest)
        self._note("lend", place[0], place[2])
        if self._get(place)["spec"]["replicas"] != manifest["spec"]["replicas"]:
            raise Conflict(409, "another manager has another value")
        self._lent.add(place)
        return self._get(place)

    async def delete(self, manifest: Manifest) -> None:
        place = place_of(manifest)
        self._note("delete", place[0], place[2])
        self.remove(*place)

    async def create(self, manifest: Manifest) -> Manifest:
        if place_of(manifest) in self._objects:
            raise Conflict(409, "already exists")
        return self._change(place_of(manifest), manifest)

    async def replace(self, manifest: Manifest) -> Manifest:
        place = place_of(manifest)
        if self._get(place)["metadata"]["resourceVersion"] != manifest["metadata"]["resourceVersion"]:
            raise Conflict(409, "the object has been modified")
        return self._change(place, manifest)

    async def list(self, scope: Scope) -> Listing:
        return Listing([copy.deepcopy(item) for item in self.objects(scope.kind).values()], str(next(self._numbers)))

    async def watch(self, scope: Scope, resource_version: str) -> AsyncIterator[WatchEvent]:
        """Everything from now on: the fake keeps no history."""
        events: asyncio.Queue[WatchEvent] = asyncio.Queue()
        self._watches.append((scope.kind, events))
        while True:
            yield await events.get()

    # ---- what the rest of the cluster does

    def put(self, manifest: Manifest) -> Manifest:
        """Creates or changes an object as somebody else."""
        return self._change(place_of(manifest), copy.deepcopy(manifest))

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        """Also removes what the object owns, like garbage collection."""
        gone = self._objects.pop((kind, namespace, name), None)
        self._applied.pop((kind, namespace, name), None)
        if gone is None:
            return
        self._tell(True, {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(next(self._numbers))}})
        for place, child in list(self._objects.items()):
            if (controller_of(child) or {}).get("uid") == gone["metadata"]["uid"]:
                self.remove(*place)

    def roll_out(self) -> None:
        """Every Deployment gets the pods it asks for, all ready."""
        for place, deployment in list(self._objects.items()):
            if place[0] is DEPLOYMENT:
                self._change(place, {**deployment, "status": rolled_out(deployment)})

    def deliver(self) -> None:
        """Brings to the store what lagged."""
        undelivered, self._undelivered = self._undelivered, []
        for is_deletion, item in undelivered:
            self._feed(is_deletion, item)

    # ---- what a test asks

    def object(self, kind: Kind, name: str, namespace: str = "team") -> Manifest:
        return self._get((kind, namespace, name))

    def objects(self, kind: Kind) -> dict[str, Manifest]:
        return {name: item for (of_kind, _, name), item in self._objects.items() if of_kind is kind}

    def writes(self) -> list[Call]:
        return [call for call in self.calls if call.is_write]

    # ---- inside

    def _note(self, verb: str, kind: Kind, name: str) -> None:
        call = Call(verb, kind.name, name)
        self.before_call(call)
        self.calls.append(call)

    def _get(self, place: Place) -> Manifest:
        if place not in self._objects:
            raise NotFound(404, f"{place[0].plural} {place[2]!r} not found")
        return self._objects[place]

    def _change(self, place: Place, item: Manifest) -> Manifest:
        before = self._objects.get(place)
        if before is not None and _content(before) == _content(item):
            return copy.deepcopy(before)
        number = next(self._numbers)
        metadata = {"uid": f"uid-{number}", "creationTimestamp": "2026-11-30T12:00:01Z", **item["metadata"]}
        metadata["generation"] = _generation(before, item)
        metadata["resourceVersion"] = str(number)
        self._objects[place] = {**item, "metadata": metadata}
        self._tell(False, self._objects[place])
        return copy.deepcopy(self._objects[place])

    def _tell(self, is_deletion: bool, item: Manifest) -> None:
        for kind, events in self._watches:
            if kind is kind_of(item):
                events.put_nowait(WatchEvent("DELETED" if is_deletion else "MODIFIED", copy.deepcopy(item)))
        if self.lags:
            self._undelivered.append((is_deletion, copy.deepcopy(item)))
        else:
            self._feed(is_deletion, copy.deepcopy(item))

    def _feed(self, is_deletion: bool, item: Manifest) -> None:
        if self.store is not None:
            (self.store.remove if is_deletion else self.store.put)(item)


def place_of(manifest: Manifest) -> Place:
    return kind_of(manifest), manifest["metadata"]["namespace"], manifest["metadata"]["name"]


def rolled_out(deployment: Manifest) -> Manifest:
    """The status that the Deployment controller writes when all is done."""
    replicas = deployment["spec"]["replicas"]
    return {
        "observedGeneration": deployment["metadata"]["generation"],
        **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), replicas),
        "conditions": [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}],
    }


def _generation(before: Manifest | None, item: Manifest) -> int:
    if before is None:
        return int(item["metadata"].get("generation", 1))
    return int(before["metadata"]["generation"]) + (before.get("spec") != item.get("spec"))


def _content(item: Manifest) -> Manifest:
    metadata = {key: value for key, value in item["metadata"].items() if key not in ("resourceVersion", "generation")}
    return {**item, "metadata": metadata}


def _applied(live: Manifest, before: Manifest, now: Manifest) -> Manifest:
    """`now` over `live`, without what only `before` asked for."""
    kept = {key: value for key, value in live.items() if key in now or key not in before}
    for key, value in now.items():
        kept[key] = _applied_value(key, kept.get(key), before.get(key), value)
    return kept


def _applied_value(key: str, live: object, before: object, now: object) -> object:
    if isinstance(now, dict) and isinstance(live, dict):
        return _applied(live, before if isinstance(before, dict) else {}, now)
    merge_key = MERGE_KEYS.get(key)
    if merge_key and isinstance(now, list) and isinstance(live, list):
        asked = {item[merge_key] for item in now}
        dropped = {item[merge_key] for item in before} if isinstance(before, list) else set()
        return [*copy.deepcopy(now), *(item for item in live if item[merge_key] not in asked | dropped)]
    return copy.deepcopy(now)

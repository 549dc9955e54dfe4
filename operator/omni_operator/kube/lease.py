"""Leader election on a Lease: one operator acts, the others keep their stores warm and wait.

The remote clock is never trusted: a lease has run out when *this* process has not seen it change for its duration.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from omni_operator.errors import ApiError, Conflict, LeaseLost, NotFound
from omni_operator.kube.api import Writer
from omni_operator.metrics import IS_LEADER
from omni_operator.objects import LEASE, Kind, Manifest
from omni_operator.settings import LeaseSettings

logger = logging.getLogger(__name__)


class LeaseApi(Protocol):
    async def read(self, kind: Kind, namespace: str, name: str) -> Manifest: ...

    async def create(self, manifest: Manifest) -> Manifest: ...

    async def replace(self, manifest: Manifest) -> Manifest: ...


@dataclass
class Election:
    """One candidate, named `identity`. Call `acquire`, then `hold` beside the work, then `release`."""

    api: LeaseApi
    namespace: str
    identity: str
    settings: LeaseSettings
    clock: Callable[[], float] = time.monotonic
    _seen_version: str = field(default="", init=False)
    _seen_at: float = field(default=0.0, init=False)
    _held: Manifest | None = field(default=None, init=False)
    _deadline: float = field(default=float("-inf"), init=False)

    async def acquire(self) -> None:
        """Returns once this process leads."""
        logger.info("%s waits for the lease %s", self.identity, self.settings.name)
        while not await self._try_acquire():
            await self._wait()
        IS_LEADER.set(1)
        logger.info("%s leads", self.identity)

    async def hold(self) -> None:
        """Renews for ever. Raises LeaseLost when another may lead: the caller must end all work at once."""
        while True:
            await self._wait()
            try:
                async with asyncio.timeout(max(self._deadline - self.clock(), 0)):
                    await self._hold(self._renewed(self._required()))
            except (ApiError, TimeoutError) as problem:
                if isinstance(problem, Conflict) or self.clock() + self.settings.retry_seconds >= self._deadline:
                    raise self._lost(f"it could not be renewed: {problem or 'no answer in time'}") from problem
                logger.warning("lease %s not renewed yet: %s", self.settings.name, problem)

    def require(self) -> None:
        """Raises LeaseLost if another may lead by now, as after a process was frozen for a while."""
        if self.clock() >= self._deadline:
            raise self._lost("its deadline has passed")

    async def release(self) -> None:
        """Gives the lease back, so that the next leader need not wait for it to run out."""
        IS_LEADER.set(0)
        if self._held is None:
            return
        spec = {**self._held["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            await self.api.replace({**self._held, "spec": spec})
        except ApiError as problem:
            logger.warning("lease %s not given back, it will run out: %s", self.settings.name, problem)
        self._held, self._deadline = None, float("-inf")

    async def _try_acquire(self) -> bool:
        try:
            lease = await self.api.read(LEASE, self.namespace, self.settings.name)
        except NotFound:
            return await self._take(None)
        except ApiError as problem:
            logger.warning("lease %s not read: %s", self.settings.name, problem)
            return False
        return self._is_free(lease) and await self._take(lease)

    def _is_free(self, lease: Manifest) -> bool:
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen_version:
            self._seen_version, self._seen_at = version, self.clock()
        holder = lease["spec"].get("holderIdentity")
        return holder in (None, "", self.identity) or self.clock() - self._seen_at >= self.settings.duration_seconds

    async def _take(self, lease: Manifest | None) -> bool:
        """Whether nobody else was faster."""
        try:
            await self._hold(self._new() if lease is None else self._taken(lease))
        except ApiError as problem:
            logger.info("lease %s not taken: %s", self.settings.name, problem)
            return False
        return True

    async def _hold(self, lease: Manifest) -> None:
        """Writes the lease; it is ours for a while from before the call, since the answer may have been slow."""
        asked_at = self.clock()
        is_new = "resourceVersion" not in lease["metadata"]
        self._held = await (self.api.create(lease) if is_new else self.api.replace(lease))
        self._deadline = asked_at + self.settings.renew_deadline_seconds

    async def _wait(self) -> None:
        await asyncio.sleep(self.settings.retry_seconds)

    def _lost(self, reason: str) -> LeaseLost:
        self._held, self._deadline = None, float("-inf")
        IS_LEADER.set(0)
        lost = LeaseLost(self.settings.name, reason)
        logger.error("%s; this process ends", lost)
        return lost

    def _required(self) -> Manifest:
        if self._held is None:
            raise self._lost("it was never acquired")
        return self._held

    def _new(self) -> Manifest:
        metadata = {"name": self.settings.name, "namespace": self.namespace}
        return self._taken({"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": metadata, "spec": {}})

    def _taken(self, lease: Manifest) -> Manifest:
        transitions = lease["spec"].get("leaseTransitions", 0) + 1
        spec = {"holderIdentity": self.identity, "acquireTime": _now(), "leaseTransitions": transitions}
        return self._renewed({**lease, "spec": {**lease["spec"], **spec}})

    def _renewed(self, lease: Manifest) -> Manifest:
        spec = {"renewTime": _now(), "leaseDurationSeconds": self.settings.duration_seconds}
        return {**lease, "spec": {**lease["spec"], **spec}}


@dataclass(frozen=True)
class FencedWriter:
    """Writes only while this process surely leads."""

    writer: Writer
    election: Election

    async def peek(self, kind: Kind, namespace: str, name: str) -> Manifest:
        return await self.writer.peek(kind, namespace, name)

    async def apply(self, manifest: Manifest, subresource: str = "") -> Manifest:
        self.election.require()
        return await self.writer.apply(manifest, subresource)

    async def lend(self, manifest: Manifest) -> Manifest:
        self.election.require()
        return await self.writer.lend(manifest)

    async def delete(self, manifest: Manifest) -> None:
        self.election.require()
        await self.writer.delete(manifest)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

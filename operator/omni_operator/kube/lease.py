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

    async def acquire(self) -> None:
        """Returns once this process leads."""
        while True:
            if await self._try_acquire():
                break
            await asyncio.sleep(self.settings.retry_seconds)
        IS_LEADER.set(1)
        logger.info("%s leads", self.identity)

    async def hold(self) -> None:
        """Renews for ever. Raises LeaseLost when another may lead: the caller must end all work at once."""
        deadline = self._deadline()
        while True:
            await asyncio.sleep(self.settings.retry_seconds)
            try:
                async with asyncio.timeout(max(deadline - self.clock(), 0)):
                    self._held = await self.api.replace(self._renewed(self._required()))
                deadline = self._deadline()
            except (ApiError, TimeoutError) as problem:
                if isinstance(problem, Conflict) or self.clock() + self.settings.retry_seconds >= deadline:
                    raise self._lost(f"it could not be renewed: {problem or 'no answer in time'}") from problem
                logger.warning("lease %s not renewed yet: %s", self.settings.name, problem)

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
        self._held = None

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
            self._held = await (self.api.create(self._new()) if lease is None else self.api.replace(self._taken(lease)))
        except ApiError as problem:
            logger.info("lease %s not taken: %s", self.settings.name, problem)
            return False
        return True

    def _deadline(self) -> float:
        return self.clock() + self.settings.renew_deadline_seconds

    def _lost(self, reason: str) -> LeaseLost:
        self._held = None
        IS_LEADER.set(0)
        return LeaseLost(self.settings.name, reason)

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


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

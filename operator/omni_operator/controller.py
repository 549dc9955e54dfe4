"""The control loop: informers fill the store and wake models, the leader's workers take them from the queue."""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from omni_operator import labels
from omni_operator.errors import ApiError, LeaseLost
from omni_operator.kube.api import Scope, Writer
from omni_operator.kube.informer import Informer, Source
from omni_operator.kube.lease import Election, FencedWriter, LeaseApi
from omni_operator.kube.queue import Urgency, WorkQueue
from omni_operator.kube.store import Store
from omni_operator.metrics import RECONCILE_SECONDS, RECONCILES
from omni_operator.objects import CHILD_KINDS, EVENT, OMNI_MODEL, POD, Kind, Manifest, ModelKey
from omni_operator.reconcile import Reconciler
from omni_operator.settings import Settings

logger = logging.getLogger(__name__)

FAILED_MOUNTS = "involvedObject.kind=Pod,reason=FailedMount"
"""Events bear no labels; these few are all that tells why a pod waits for a Secret: its status does not."""

PASS_LIMIT_S = 120
"""Every call of a pass has a shorter limit of its own, so a pass that takes this long is stuck."""


@dataclass(frozen=True)
class Identity:
    """This process among its kind: the name of its pod, and the namespace that holds the lease."""

    name: str
    namespace: str


@dataclass
class Health:
    is_synced: bool = False
    is_leader: bool = False
    models: int = 0


class Api(Source, Writer, LeaseApi, Protocol):
    """Everything that the controller asks of the API server."""


@dataclass
class Controller:
    kube: Api
    settings: Settings
    identity: Identity
    queue: WorkQueue = field(default_factory=WorkQueue)
    health: Health = field(default_factory=Health)

    def __post_init__(self) -> None:
        self.store = Store(self._wake)
        self.election = Election(self.kube, self.identity.namespace, self.identity.name, self.settings.lease)
        self.reconciler = Reconciler(FencedWriter(self.kube, self.election), self.store, self.settings, _now)

    def take(self, change: str | None, model: Manifest) -> None:
        """From the frame's own watch: what the store knows already, such as a status that we wrote, wakes nobody."""
        if change == "DELETED":
            self.store.remove(model)
        else:
            self.store.put(model)

    async def run(self) -> None:
        """Until cancelled, or LeaseLost. A standby only watches, so that it may lead without a pause."""
        try:
            async with asyncio.TaskGroup() as tasks:
                informers = [Informer(self.kube, scope, self.store) for scope in scopes(self.settings)]
                for informer in informers:
                    tasks.create_task(informer.run(), name=f"informer {informer.name}")
                for informer in informers:
                    await informer.is_synced.wait()
                self.health.is_synced = True
                await self.election.acquire()
                self.health.is_leader = True
                tasks.create_task(self.election.hold(), name="lease")
                tasks.create_task(self._resync(), name="resync")
                for number in range(self.settings.workers):
                    tasks.create_task(self._work(), name=f"worker {number}")
        finally:
            self.health.is_leader = False
            await self.election.release()

    def _wake(self, key: ModelKey, kind: Kind) -> None:
        self.queue.wake(key, Urgency.SAID if kind is OMNI_MODEL else Urgency.HAPPENED)

    async def _work(self) -> None:
        while True:
            await self._look_at(await self.queue.take())

    async def _look_at(self, key: ModelKey) -> None:
        try:
            with RECONCILE_SECONDS.time():
                async with asyncio.timeout(PASS_LIMIT_S):
                    is_settled = await self.reconciler.reconcile(key)
        except (ApiError, TimeoutError) as problem:
            RECONCILES.labels("retry").inc()
            logger.warning("model %s: %s", key, problem or "the pass took too long")
            self.queue.failed(key, getattr(problem, "retry_after_s", None) or 0.0)
        except LeaseLost:
            raise
        except Exception:
            RECONCILES.labels("error").inc()
            logger.exception("model %s: the pass failed; the other models go on", key)
            self.queue.failed(key)
        else:
            RECONCILES.labels("settled" if is_settled else "blocked").inc()
            self.queue.done(key) if is_settled else self.queue.failed(key)

    async def _resync(self) -> None:
        """Should an event ever be lost, this bounds how long its loss lasts."""
        while True:
            self.health.models = len(models := self.store.models())
            for key in models:
                self.queue.wake(key)
            await asyncio.sleep(self.settings.resync_seconds)


def scopes(settings: Settings) -> list[Scope]:
    """Everything that is watched: models, what bears our label, and volumes that pods wait for."""
    return [
        scope
        for namespace in settings.watch_namespaces or (None,)
        for scope in (
            Scope(OMNI_MODEL, namespace),
            *(Scope(kind, namespace, labels.OF_ANY_MODEL) for kind in (*CHILD_KINDS, POD)),
            Scope(EVENT, namespace, field_selector=FAILED_MOUNTS),
        )
    ]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

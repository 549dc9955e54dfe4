"""One pass over one model: observe → resolve → plan → build → apply → status.

Level-triggered: nothing that a pass needs is remembered between passes, so the process may end after any call and the
next pass goes on.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from omni_contract.api.parse import parse
from omni_contract.api.problems import InvalidModelError
from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.api.v1alpha1.status import OmniModelStatus
from omni_contract.resolve import ResolvedModel, resolve
from omni_contract.wire import names as wire
from omni_operator.build.children import desired_children, replicas_of
from omni_operator.build.unit import render
from omni_operator.errors import NamespaceEnding, NotFound, Refused
from omni_operator.kube.api import Writer
from omni_operator.kube.store import Store, version_of
from omni_operator.metrics import WRITES
from omni_operator.objects import CONTROLLER_REVISION, Manifest, ModelKey, kind_of, ref_of
from omni_operator.plan.changes import Changes, changes_of
from omni_operator.plan.inputs import inputs_of
from omni_operator.plan.observe import Observed
from omni_operator.plan.record import Record, latest_revision, read_record
from omni_operator.plan.scaling import fewest_of, is_left_to_others, lent, replicas_now, with_replicas
from omni_operator.plan.status import Pass, read_status, rejected_status, status_of
from omni_operator.settings import Settings


@dataclass(frozen=True)
class Plan:
    """What a model's children should be, and what that was made from."""

    made_from: Hashable
    model: ResolvedModel
    record: Record
    desired: list[Manifest]

    @property
    def revision(self) -> str:
        name: str = self.desired[0]["metadata"]["name"]
        return name


@dataclass(frozen=True)
class Reconciler:
    kube: Writer
    store: Store
    settings: Settings
    now: Callable[[], str]
    """RFC 3339."""
    plans: dict[ModelKey, Plan] = field(default_factory=dict)
    """Of each model the last one: most passes only look at how far its children have come."""

    async def reconcile(self, key: ModelKey) -> bool:
        """Whether the model needs no further look unless something happens.

        Raises ApiError where the API server could not be asked; the pass is then to be repeated.
        """
        observed = self.store.observe(key)
        if not observed.is_wanted:
            self.plans.pop(key, None)
            return True
        try:
            plan = self._plan(key, observed)
        except InvalidModelError as problems:
            await self._report(observed, rejected_status(observed, str(problems), self.now()))
            return True

        children = [*observed.children, *await self._unseen(key, plan.desired, observed.children)]
        changes = changes_of(plan.desired, children, observed.owner.uid)
        try:
            obstacles = await self._write(changes, children, fewest_of(plan.model))
        except NamespaceEnding:
            return True

        is_settled = not obstacles and not changes.leaving
        replicas = replicas_of(plan.model, observed.owner)
        done = Pass(plan.model, plan.record, plan.revision, replicas, is_settled, obstacles)
        observed = self.store.observe(key)
        if observed.is_wanted:
            await self._report(observed, status_of(observed, done, self.now()))
        return is_settled

    def _plan(self, key: ModelKey, observed: Observed) -> Plan:
        """The same as before while the user's words and the stored revision are."""
        stored = latest_revision(observed.owned_children)
        made_from = (observed.owner, observed.generation, observed.refresh, stored and version_of(stored))
        known = self.plans.get(key)
        if known is not None and known.made_from == made_from:
            return known
        spec = spec_of(observed.resource)
        model = resolve(key.name, key.namespace, spec, self.settings.accelerators)
        record = render(model, inputs_of(spec, model, observed.refresh), read_record(stored), self.settings)
        desired = desired_children(model, record, observed.owner, observed.owned_children)
        self.plans[key] = Plan(made_from, model, record, desired)
        return self.plans[key]

    async def _unseen(self, key: ModelKey, desired: Iterable[Manifest], seen: Iterable[Manifest]) -> list[Manifest]:
        """Objects with names of ours that the store lacks: without our label, or newer than what the watch brought."""
        known, found = {ref_of(child) for child in seen}, []
        for ref in (ref_of(child) for child in desired):
            if ref not in known:
                try:
                    found.append(await self.kube.peek(ref.kind, key.namespace, ref.name))
                except NotFound:
                    continue
        return found

    async def _write(self, changes: Changes, children: Iterable[Manifest], fewest: Mapping[str, int]) -> list[str]:
        """Gives what kept objects from being written, in the API server's words; one refusal does not hide another."""
        obstacles = [f"{ref} exists and is not of this model; delete or rename it" for ref in changes.foreign]
        there = {ref_of(child): child for child in children}
        for child in changes.apply:
            try:
                self.store.remember(await self._apply(child, there.get(ref_of(child)), fewest))
                WRITES.labels("apply", child["kind"]).inc()
            except NamespaceEnding:
                raise
            except Refused as refusal:
                obstacles.append(f"{ref_of(child)}: {refusal}")
                if kind_of(child) is CONTROLLER_REVISION:
                    return obstacles
        for child in changes.delete:
            await self.kube.delete(child)
            WRITES.labels("delete", child["kind"]).inc()
        return obstacles

    async def _apply(self, child: Manifest, live: Manifest | None, fewest: Mapping[str, int]) -> Manifest:
        """An autoscaled Deployment begins with the fewest replicas; later, others' number outlives what we change."""
        if is_left_to_others(child):
            if live is None or not replicas_now(live):
                child = with_replicas(child, fewest[child["metadata"]["name"]])
            else:
                await self.kube.lend(lent(live))
        return await self.kube.apply(_of_uid(child, None if live is None else live["metadata"]["uid"]))

    async def _report(self, observed: Observed, status: OmniModelStatus) -> None:
        """Writes the status if it is another than the one on the server."""
        if read_status(observed.status) == status:
            return
        owner = observed.owner
        metadata = {"name": owner.name, "namespace": owner.namespace, "uid": owner.uid}
        content = status.model_dump(mode="json", by_alias=True, exclude_none=True)
        body = {"apiVersion": wire.API_VERSION, "kind": wire.KIND, "metadata": metadata, "status": content}
        try:
            self.store.remember(await self.kube.apply(body, "status"))
            WRITES.labels("apply", f"{wire.KIND}/status").inc()
        except NotFound:
            return


def spec_of(resource: Manifest) -> OmniModelSpec:
    """Raises InvalidModelError for a model that got past the schema, say because the CRD is of another version."""
    model, problems = parse({key: value for key, value in resource.items() if key != "status"})
    if model is None:
        raise InvalidModelError(problems)
    return model.spec


def _of_uid(child: Manifest, uid: str | None) -> Manifest:
    """Bound to the object that was seen: should it be deleted meanwhile, this call must not make it again."""
    return child if uid is None else {**child, "metadata": {**child["metadata"], "uid": uid}}

"""One pass after another over a model, against an API server in memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from omni_operator.errors import ApiError, NamespaceEnding, Refused, Unavailable
from omni_operator.kube.store import Store
from omni_operator.objects import (
    CONFIG_MAP,
    CONTROLLER_REVISION,
    DEPLOYMENT,
    OMNI_MODEL,
    SERVICE,
    Manifest,
    ModelKey,
)
from omni_operator.reconcile import Reconciler
from omni_operator.settings import Settings
from tests.support.fake_kube import Call, FakeKube
from tests.support.operator_models import a_model, a_spec, a_stage, some_settings

KEY = ModelKey("team", "toy")


@dataclass
class Cluster:
    """An API server, the operator's view of it, and an operator that may be replaced by another."""

    kube: FakeKube = field(default_factory=FakeKube)
    settings: Settings = field(default_factory=some_settings)
    now: str = "2026-11-30T13:00:00Z"

    def __post_init__(self) -> None:
        self.woken: list[ModelKey] = []
        self.kube.store = Store(lambda key, kind: self.woken.append(key))
        self.reconciler = self._another_operator()

    @property
    def store(self) -> Store:
        assert self.kube.store is not None
        return self.kube.store

    async def reconcile(self, key: ModelKey = KEY) -> bool:
        if (self.reconciler.store, self.reconciler.settings) != (self.store, self.settings):
            self.reconciler = self._another_operator()
        return await self.reconciler.reconcile(key)

    def _another_operator(self) -> Reconciler:
        return Reconciler(self.kube, self.store, self.settings, now=lambda: self.now)

    async def settle(self) -> None:
        """Passes and roll-outs until a pass writes nothing."""
        for _ in range(10):
            before = len(self.kube.writes())
            self.kube.roll_out()
            await self.reconcile()
            if len(self.kube.writes()) == before:
                return
        raise AssertionError(f"still writing after ten passes: {self.kube.writes()[-5:]}")

    def edit(self, spec: dict[str, Any], **metadata: Any) -> None:
        live = self.kube.object(OMNI_MODEL, "toy")
        self.kube.put({**live, "spec": spec, "metadata": {**live["metadata"], **metadata}})

    def status(self) -> Manifest:
        status: Manifest = self.kube.object(OMNI_MODEL, "toy").get("status", {})
        return status

    def condition(self, kind: str) -> tuple[str, str]:
        found = next(one for one in self.status()["conditions"] if one["type"] == kind)
        return found["status"], found["reason"]

    def templates(self) -> dict[str, Manifest]:
        """What decides whether pods restart."""
        return {name: one["spec"]["template"] for name, one in self.kube.objects(DEPLOYMENT).items()}


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.kube.put(a_model())
    return cluster


def spec_with(**fields: Any) -> dict[str, Any]:
    """The toy model's spec with fields of the denoiser changed."""
    return a_spec(
        *(a_stage(name, **(fields if name == "denoiser" else {})) for name in ("encoder", "denoiser", "decoder"))
    )


async def test_a_new_model_gets_all_its_children_and_a_status(cluster: Cluster) -> None:
    assert await cluster.reconcile()
    assert set(cluster.kube.objects(DEPLOYMENT)) == {"toy-encoder", "toy-denoiser", "toy-decoder", "toy-frontend"}
    assert set(cluster.kube.objects(SERVICE)) == set(cluster.kube.objects(DEPLOYMENT))
    assert len(cluster.kube.objects(CONFIG_MAP)) == 4
    assert cluster.status()["phase"] == "Progressing"
    assert cluster.condition("Ready") == ("False", "NotReady")


async def test_a_model_is_ready_once_every_replica_is(cluster: Cluster) -> None:
    await cluster.settle()
    status = cluster.status()
    assert (status["phase"], status["stagesReady"]) == ("Ready", "3/3")
    assert cluster.condition("Ready") == ("True", "AllReady")
    assert cluster.condition("Progressing") == ("False", "Complete")
    assert cluster.condition("Stalled") == ("False", "NotStalled")
    assert status["endpoints"]["url"] == "http://toy-frontend.team.svc:80/v1"
    assert status["observedGeneration"] == 1
    assert status["revision"] in cluster.kube.objects(CONTROLLER_REVISION)


@pytest.mark.case("operator:A02")
@pytest.mark.case("operator:Q05")
async def test_a_settled_model_is_never_written_again(cluster: Cluster) -> None:
    await cluster.settle()
    cluster.kube.calls.clear()
    for _ in range(20):
        await cluster.reconcile()
    assert cluster.kube.calls == []


@pytest.mark.case("operator:A15")
async def test_a_watch_that_lags_makes_no_second_child(cluster: Cluster) -> None:
    cluster.kube.lags = True
    await cluster.reconcile()
    first = len(cluster.kube.writes())
    await cluster.reconcile()
    assert len(cluster.kube.writes()) == first


@pytest.mark.case("operator:A16")
@pytest.mark.case("operator:A17")
async def test_a_restarted_operator_finds_its_children_although_its_store_is_empty(cluster: Cluster) -> None:
    await cluster.settle()
    model = cluster.kube.object(OMNI_MODEL, "toy")
    cluster.kube.store = Store(lambda key, kind: None)
    cluster.store.put(model)
    cluster.kube.calls.clear()
    await cluster.reconcile()
    assert [call for call in cluster.kube.writes() if call.kind != "OmniModel"] == []


@pytest.mark.case("operator:M18")
@pytest.mark.parametrize("kind", [SERVICE, DEPLOYMENT])
async def test_a_deleted_child_comes_back(cluster: Cluster, kind: Any) -> None:
    await cluster.settle()
    cluster.kube.remove(kind, "team", "toy-denoiser")
    assert KEY in cluster.woken
    await cluster.settle()
    assert "toy-denoiser" in cluster.kube.objects(kind)
    assert cluster.condition("Ready") == ("True", "AllReady")


@pytest.mark.case("operator:L07")
async def test_a_changed_value_of_ours_is_put_right(cluster: Cluster) -> None:
    await cluster.settle()
    live = cluster.kube.object(DEPLOYMENT, "toy-denoiser")
    cluster.kube.put({**live, "spec": {**live["spec"], "replicas": 9}})
    await cluster.reconcile()
    assert cluster.kube.object(DEPLOYMENT, "toy-denoiser")["spec"]["replicas"] == 1


@pytest.mark.case("operator:C16")
async def test_editing_one_stage_restarts_only_that_stage(cluster: Cluster) -> None:
    await cluster.settle()
    before = cluster.templates()
    cluster.edit(spec_with(maxBatchSize=4))
    await cluster.settle()
    after = cluster.templates()
    assert {name for name in before if before[name] != after[name]} == {"toy-denoiser"}
    assert cluster.condition("Ready") == ("True", "AllReady")


@pytest.mark.case("operator:C01")
@pytest.mark.case("operator:G12")
async def test_a_certificate_that_is_not_there_is_told_and_the_model_is_woken_by_the_kubelet_s_event(
    cluster: Cluster,
) -> None:
    cluster.edit(a_spec(network={"tls": {"secretName": "toy-tls"}}))
    await cluster.reconcile()
    deployment = cluster.kube.object(DEPLOYMENT, "toy-denoiser")
    waiting = {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": deployment["spec"]["template"]["spec"], "status": waiting}
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    cluster.kube.put({**pod, "metadata": {"name": "toy-denoiser-abc", "namespace": "team", "labels": labels}})
    cluster.woken.clear()
    words = 'MountVolume.SetUp failed for volume "tls" : secret "toy-tls" not found'
    event = {"apiVersion": "v1", "kind": "Event", "reason": "FailedMount", "message": words}
    about = {"kind": "Pod", "name": "toy-denoiser-abc"}
    cluster.kube.put({**event, "metadata": {"name": "toy.1", "namespace": "team"}, "involvedObject": about})
    assert cluster.woken == [KEY]
    await cluster.reconcile()
    [stage] = [stage for stage in cluster.status()["stages"] if stage["name"] == "denoiser"]
    assert stage["message"] == f"Pod toy-denoiser-abc: FailedMount: {words}"
    assert stage["hint"].startswith('create Secret "toy-tls" in the model\'s namespace with the keys tls.crt,')
    ready = next(one for one in cluster.status()["conditions"] if one["type"] == "Ready")
    assert f"denoiser: {stage['message']}" in ready["message"]


async def test_a_model_is_not_ready_while_old_pods_satisfy_the_count(cluster: Cluster) -> None:
    await cluster.settle()
    cluster.edit(spec_with(maxBatchSize=4))
    await cluster.reconcile()
    assert cluster.condition("Ready") == ("False", "NotReady")
    denoiser = next(stage for stage in cluster.status()["stages"] if stage["name"] == "denoiser")
    assert (denoiser["ready"], denoiser["updated"]) == (1, 0)


@pytest.mark.case("operator:L02")
async def test_an_old_stage_file_is_pruned_after_the_rollout(cluster: Cluster) -> None:
    await cluster.settle()
    before = set(cluster.kube.objects(CONFIG_MAP))
    cluster.edit(spec_with(maxBatchSize=4))
    await cluster.reconcile()
    assert before < set(cluster.kube.objects(CONFIG_MAP))
    await cluster.settle()
    assert len(cluster.kube.objects(CONFIG_MAP)) == len(before)


@pytest.mark.case("operator:B11")
@pytest.mark.parametrize(("field", "value"), [("sampling", {"steps": 3}), ("replicas", 4)])
async def test_sampling_and_replicas_restart_nothing(cluster: Cluster, field: str, value: Any) -> None:
    await cluster.settle()
    before = cluster.templates()
    cluster.edit(spec_with(**{field: value}))
    await cluster.settle()
    assert cluster.templates() == before
    assert len(cluster.kube.objects(CONTROLLER_REVISION)) == 1


UPGRADED = some_settings(
    frontend={"image": "frontend:2"},
    accelerators={
        "allowFakeEngine": True,
        "profiles": {"cpu": {"vendor": "cpu", "image": "runtime-cpu:2", "env": {"NEW": "1"}}},
        "pools": {"cpu": {"profile": "cpu", "nodeSelector": {"new": "label"}}},
    },
)


@pytest.mark.case("operator:D12")
@pytest.mark.case("operator:D13")
@pytest.mark.case("operator:D09")
async def test_an_upgraded_operator_restarts_nothing(cluster: Cluster) -> None:
    await cluster.settle()
    before = cluster.templates()
    cluster.settings = UPGRADED
    cluster.kube.calls.clear()
    await cluster.settle()
    assert cluster.templates() == before
    assert cluster.kube.writes() == []


async def test_an_edit_after_an_upgrade_restarts_only_the_edited_stage(cluster: Cluster) -> None:
    await cluster.settle()
    before = cluster.templates()
    cluster.settings = UPGRADED
    cluster.edit(spec_with(maxBatchSize=4))
    await cluster.settle()
    after = cluster.templates()
    assert {name for name in before if before[name] != after[name]} == {"toy-denoiser"}
    assert after["toy-denoiser"]["spec"]["containers"][0]["image"] == "runtime-cpu:2"


async def test_a_refresh_renders_everything_with_the_new_operator(cluster: Cluster) -> None:
    await cluster.settle()
    cluster.settings = UPGRADED
    cluster.edit(a_spec(), annotations={"serving.omnimodel.dev/refresh": "1"})
    await cluster.settle()
    images = {name: template["spec"]["containers"][0]["image"] for name, template in cluster.templates().items()}
    assert images == {
        "toy-encoder": "runtime-cpu:2",
        "toy-denoiser": "runtime-cpu:2",
        "toy-decoder": "runtime-cpu:2",
        "toy-frontend": "frontend:2",
    }


@pytest.mark.case("operator:D11")
async def test_stripping_all_annotations_restarts_nothing(cluster: Cluster) -> None:
    await cluster.settle()
    before = cluster.templates()
    for name, live in cluster.kube.objects(DEPLOYMENT).items():
        metadata = {key: value for key, value in live["metadata"].items() if key != "annotations"}
        cluster.kube.put({**live, "metadata": {**metadata, "name": name}})
    await cluster.settle()
    assert cluster.templates() == before


@pytest.mark.case("operator:G01")
@pytest.mark.case("operator:G02")
async def test_a_model_that_is_being_deleted_is_left_to_garbage_collection(cluster: Cluster) -> None:
    await cluster.settle()
    cluster.edit({"nonsense": True}, deletionTimestamp="2026-11-30T13:00:00Z")
    cluster.kube.remove(DEPLOYMENT, "team", "toy-denoiser")
    cluster.kube.calls.clear()
    assert await cluster.reconcile()
    assert cluster.kube.calls == []


@pytest.mark.case("operator:A14")
async def test_a_model_made_anew_under_its_old_name_waits_for_the_old_children_to_go(cluster: Cluster) -> None:
    await cluster.settle()
    old = dict(cluster.kube.objects(DEPLOYMENT))
    cluster.kube.lags = True
    cluster.kube.remove(OMNI_MODEL, "team", "toy")
    cluster.kube.deliver()
    cluster.kube.lags = False
    for one in old.values():
        cluster.kube.put({key: value for key, value in one.items() if key != "status"})
    cluster.kube.put(a_model(uid="uid-2"))
    assert not await cluster.reconcile()
    assert cluster.condition("Stalled") == ("False", "NotStalled")
    for name in old:
        cluster.kube.remove(DEPLOYMENT, "team", name)
    await cluster.settle()
    assert cluster.condition("Ready") == ("True", "AllReady")


@pytest.mark.case("operator:G14")
async def test_an_object_of_somebody_else_with_our_name_is_named_and_not_touched(cluster: Cluster) -> None:
    foreign = cluster.kube.put(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "toy-denoiser", "namespace": "team"}}
    )
    assert not await cluster.reconcile()
    assert cluster.condition("Stalled") == ("True", "Blocked")
    stalled = next(one for one in cluster.status()["conditions"] if one["type"] == "Stalled")
    assert "Service toy-denoiser" in stalled["message"]
    assert cluster.kube.object(SERVICE, "toy-denoiser") == foreign
    assert "toy-encoder" in cluster.kube.objects(DEPLOYMENT)


async def test_a_refused_child_stalls_the_model_in_the_server_s_words(cluster: Cluster) -> None:
    def refuse(call: Call) -> None:
        if (call.verb, call.kind, call.name) == ("apply", "Deployment", "toy-denoiser"):
            raise Refused(403, 'admission policy "no-gpus" denied the request')

    cluster.kube.before_call = refuse
    assert not await cluster.reconcile()
    stalled = next(one for one in cluster.status()["conditions"] if one["type"] == "Stalled")
    assert stalled["message"] == 'Deployment toy-denoiser: admission policy "no-gpus" denied the request'
    assert "toy-decoder" in cluster.kube.objects(DEPLOYMENT)


async def test_nothing_is_made_if_the_record_cannot_be_written(cluster: Cluster) -> None:
    def refuse(call: Call) -> None:
        if (call.verb, call.kind) == ("apply", "ControllerRevision"):
            raise Refused(403, "no")

    cluster.kube.before_call = refuse
    await cluster.reconcile()
    assert cluster.kube.objects(DEPLOYMENT) == {}


@pytest.mark.case("operator:G02")
async def test_a_namespace_that_is_being_deleted_is_no_error(cluster: Cluster) -> None:
    def refuse(call: Call) -> None:
        if call.verb == "apply":
            raise NamespaceEnding(403, "namespace team is being terminated")

    cluster.kube.before_call = refuse
    assert await cluster.reconcile()


@pytest.mark.case("operator:A30")
@pytest.mark.case("operator:F12")
async def test_a_model_that_cannot_be_used_says_so_once_and_keeps_what_runs(cluster: Cluster) -> None:
    await cluster.settle()
    before = cluster.templates()
    cluster.edit(spec_with(accelerator={"pool": "no-such-pool"}))
    assert await cluster.reconcile()
    assert cluster.condition("Accepted") == ("False", "Invalid")
    assert cluster.condition("Stalled") == ("True", "Invalid")
    assert cluster.status()["phase"] == "Invalid"
    assert cluster.templates() == before
    writes = len(cluster.kube.writes())
    await cluster.reconcile()
    assert len(cluster.kube.writes()) == writes

    cluster.edit(a_spec())
    await cluster.settle()
    assert cluster.condition("Ready") == ("True", "AllReady")


@pytest.mark.case("operator:A11")
async def test_suspending_takes_the_stages_away_and_resuming_brings_them_back(cluster: Cluster) -> None:
    for _ in range(2):
        cluster.edit(a_spec(suspend=True))
        await cluster.settle()
        assert cluster.status()["phase"] == "Suspended"
        assert cluster.condition("StagesReady") == ("False", "Suspended")
        assert cluster.kube.object(DEPLOYMENT, "toy-denoiser")["spec"]["replicas"] == 0
        cluster.edit(a_spec())
        await cluster.settle()
        assert cluster.status()["phase"] == "Ready"
        assert cluster.condition("StagesReady") == ("True", "AllReady")


async def test_a_condition_keeps_its_time_until_its_status_changes(cluster: Cluster) -> None:
    await cluster.settle()
    cluster.now = "2026-11-30T14:00:00Z"
    cluster.edit(spec_with(maxBatchSize=4))
    await cluster.reconcile()
    times = {one["type"]: one["lastTransitionTime"] for one in cluster.status()["conditions"]}
    assert times["Ready"] == "2026-11-30T14:00:00Z"
    assert times["Accepted"] == "2026-11-30T13:00:00Z"


def cut_after(calls: int) -> Callable[[Call], None]:
    """The process ends at the given call."""
    left = iter(range(calls))

    def cut(call: Call) -> None:
        if next(left, None) is None:
            raise Unavailable(0, "the process was killed here")

    return cut


PAIR = a_spec(a_stage("first"), a_stage("last"))
EDITS: dict[str, Callable[[Cluster], None]] = {
    "create": lambda cluster: None,
    "update": lambda cluster: cluster.edit(a_spec(a_stage("first", maxBatchSize=4, replicas=2), a_stage("last"))),
    "shrink": lambda cluster: cluster.edit(a_spec(a_stage("last", sampling={"steps": 2}))),
}


@pytest.mark.case("operator:A18")
@pytest.mark.parametrize("edit", EDITS)
async def test_an_operator_that_ends_after_any_call_converges_when_it_comes_back(edit: str) -> None:
    uncut = await edited_pair(edit)
    await uncut.settle()
    assert len(uncut.kube.calls) > 5
    for cut in range(len(uncut.kube.calls)):
        cluster = await edited_pair(edit)
        cluster.kube.before_call = cut_after(cut)
        with pytest.raises(ApiError):
            await cluster.settle()
        cluster.kube.before_call = lambda call: None
        await cluster.settle()
        assert cluster.templates() == uncut.templates()
        assert cluster.condition("Ready") == ("True", "AllReady")


async def edited_pair(edit: str) -> Cluster:
    """A settled model of two stages right after an edit, or a new one; no call is counted yet."""
    cluster = Cluster()
    cluster.kube.put(a_model(PAIR))
    if edit != "create":
        await cluster.settle()
    EDITS[edit](cluster)
    cluster.kube.calls.clear()
    return cluster


async def test_a_plan_is_made_anew_only_when_the_user_or_the_stored_revision_says_something_new(
    cluster: Cluster,
) -> None:
    await cluster.settle()
    plan = cluster.reconciler.plans[KEY]
    cluster.kube.remove(SERVICE, "team", "toy-denoiser")
    await cluster.settle()
    assert cluster.reconciler.plans[KEY] is plan
    cluster.edit(spec_with(replicas=2))
    await cluster.settle()
    assert cluster.reconciler.plans[KEY] is not plan
    cluster.kube.remove(OMNI_MODEL, "team", "toy")
    await cluster.reconcile()
    assert cluster.reconciler.plans == {}

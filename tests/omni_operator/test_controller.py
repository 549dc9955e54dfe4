"""The control loop, with an API server in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from omni_operator.controller import Controller, Identity, scopes
from omni_operator.errors import LeaseLost
from omni_operator.kube.queue import WorkQueue
from omni_operator.objects import DEPLOYMENT, EVENT, LEASE, OMNI_MODEL, SERVICE, ModelKey
from tests.support.fake_kube import Call, FakeKube
from tests.support.operator_models import a_model, a_spec, a_stage, some_settings

SPEC = a_spec(a_stage("denoiser"))
SETTINGS = some_settings(lease={"retrySeconds": 0.01}, workers=2)


@asynccontextmanager
async def running(kube: FakeKube) -> AsyncIterator[Controller]:
    controller = Controller(kube, SETTINGS, Identity("one", "system"), queue=WorkQueue(pause_s=0.001))
    task = asyncio.create_task(controller.run())
    try:
        yield controller
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - the fake tells nobody
            await asyncio.sleep(0.005)


def is_made(kube: FakeKube, name: str) -> bool:
    return f"{name}-denoiser" in kube.objects(DEPLOYMENT)


async def test_models_that_are_there_and_models_that_come_are_made() -> None:
    kube = FakeKube()
    kube.put(a_model(SPEC, name="early"))
    async with running(kube) as controller:
        await until(lambda: is_made(kube, "early"))
        kube.put(a_model(SPEC, name="late", uid="uid-2"))
        await until(lambda: is_made(kube, "late"))
        assert controller.health.is_leader


async def test_a_deleted_child_comes_back_without_anybody_asking() -> None:
    kube = FakeKube()
    kube.put(a_model(SPEC))
    async with running(kube):
        await until(lambda: is_made(kube, "toy"))
        kube.remove(SERVICE, "team", "toy-denoiser")
        await until(lambda: "toy-denoiser" in kube.objects(SERVICE))


@pytest.mark.case("operator:M09")
@pytest.mark.case("operator:H12")
async def test_a_model_whose_pass_fails_keeps_no_other_from_its_turn(caplog: pytest.LogCaptureFixture) -> None:
    def fail(call: Call) -> None:
        if call.name.startswith("bad"):
            raise RuntimeError("a defect of ours")

    kube = FakeKube(before_call=fail)
    kube.put(a_model(SPEC, name="bad"))
    kube.put(a_model(SPEC, name="good", uid="uid-2"))
    async with running(kube):
        await until(lambda: is_made(kube, "good"))
        await until(lambda: "model team/bad: the pass failed" in caplog.text)
        kube.before_call = lambda call: None
        await until(lambda: is_made(kube, "bad"))


async def test_a_standby_watches_and_does_not_act() -> None:
    kube = FakeKube()
    kube.put(a_model(SPEC))
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "another"}}
    kube.put({**lease, "metadata": {"name": "omni-operator", "namespace": "system"}})
    async with running(kube) as controller:
        await until(lambda: controller.health.is_synced)
        await asyncio.sleep(0.05)
        assert not controller.health.is_leader
        assert kube.objects(DEPLOYMENT) == {}


async def test_a_controller_that_ends_gives_the_lease_back() -> None:
    kube = FakeKube()
    async with running(kube) as controller:
        await until(lambda: controller.health.is_leader)
    assert kube.object(LEASE, "omni-operator", "system")["spec"]["holderIdentity"] == ""


async def test_a_controller_that_lost_the_lease_ends() -> None:
    kube = FakeKube()
    controller = Controller(kube, SETTINGS, Identity("one", "system"))
    task = asyncio.create_task(controller.run())
    await until(lambda: controller.health.is_leader)
    lease = kube.object(LEASE, "omni-operator", "system")
    kube.put({**lease, "spec": {**lease["spec"], "holderIdentity": "another"}})
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.timeout(10):
            await task
    assert caught.group_contains(LeaseLost)
    assert kube.object(LEASE, "omni-operator", "system")["spec"]["holderIdentity"] == "another"


@pytest.mark.case("operator:K06")
@pytest.mark.case("operator:L05")
def test_only_models_what_bears_our_label_and_failed_mounts_are_watched() -> None:
    everywhere = scopes(some_settings())
    assert {scope.namespace for scope in everywhere} == {None}
    assert [scope.kind for scope in everywhere if not scope.label_selector] == [OMNI_MODEL, EVENT]
    assert [scope.field_selector for scope in everywhere if scope.kind is EVENT] == [
        "involvedObject.kind=Pod,reason=FailedMount"
    ]
    named = scopes(some_settings(watchNamespaces=["a", "b"]))
    assert {scope.namespace for scope in named} == {"a", "b"}
    assert all("/namespaces/" in scope.path for scope in named)


def test_a_key_is_spelled_as_kubectl_does() -> None:
    assert str(ModelKey("team", "toy")) == "team/toy"


async def test_a_model_that_the_store_knows_already_wakes_nobody() -> None:
    kube = FakeKube()
    model = kube.put(a_model(SPEC))
    controller = Controller(kube, SETTINGS, Identity("one", "system"))
    controller.take("ADDED", model)
    assert await controller.queue.take() == ModelKey("team", "toy")
    controller.queue.done(ModelKey("team", "toy"))
    controller.take("MODIFIED", model)
    controller.store.remember(later := kube.put({**model, "status": {"phase": "Ready"}}))
    controller.take("MODIFIED", later)
    async with asyncio.timeout(5):
        while controller.queue._entries:  # noqa: ASYNC110 - the rest ends by a timer
            await asyncio.sleep(0.01)
    controller.take("DELETED", later)
    assert await controller.queue.take() == ModelKey("team", "toy")

"""The life of a model: made, healed, edited, upgraded, deleted."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.control.conftest import MakeOperator
from tests.support.operator_models import a_spec, a_stage
from tests.support.operator_world import CHILDREN, Object, World
from tests.support.operators import Operator
from tests.support.waiting import eventually

pytestmark = pytest.mark.control

STAGES = ("encoder", "denoiser", "decoder")


@pytest.fixture
def toy(a_world: World, operator: Operator) -> World:
    """A world in which the model "toy" is Ready."""
    a_world.create("toy", a_spec())
    a_world.wait_ready("toy")
    return a_world


def denoiser_with(**fields: Any) -> Callable[[Object], None]:
    def change(model: Object) -> None:
        model["spec"]["stages"][1] |= fields

    return change


def settled(world: World) -> dict[str, set[str]]:
    """The pods once a pass has seen the newest generation and nothing rolls any more."""
    world.wait_ready("toy")
    return world.pod_ages("toy")


@pytest.mark.case("operator:M18")
@pytest.mark.parametrize(
    ("plural", "name"),
    [
        ("deployments", "toy-denoiser"),
        ("services", "toy-denoiser"),
        ("services", "toy-frontend"),
        ("configmaps", "toy-stage-table"),
        ("serviceaccounts", "toy-frontend"),
        ("rolebindings", "toy-frontend"),
    ],
)
def test_a_deleted_child_comes_back(toy: World, plural: str, name: str) -> None:
    before = toy.children(plural, "toy")[name]["metadata"]["uid"]
    toy.delete_child(plural, name)

    def is_back() -> bool:
        return toy.children(plural, "toy").get(name, {"metadata": {"uid": before}})["metadata"]["uid"] != before

    eventually(f"{plural}/{name} is made anew", is_back, within_s=10)
    toy.wait_ready("toy")


@pytest.mark.case("operator:C16")
def test_editing_one_stage_restarts_only_that_stage(toy: World) -> None:
    before = toy.pod_ages("toy")
    toy.edit("toy", denoiser_with(maxBatchSize=4))
    after = settled(toy)
    assert {name for name in before if before[name] != after[name]} == {"denoiser"}
    assert len(eventually("the old file is pruned", lambda: _stage_files(toy, "denoiser"))) == 1


@pytest.mark.parametrize(
    ("change", "restarted"),
    [
        (lambda spec: spec["stages"][1].update(logLevel="debug"), {"denoiser"}),
        (lambda spec: spec["frontend"].update(logLevel="debug"), {"frontend"}),
        (lambda spec: spec.update(monitoring={"logLevel": "debug"}), {*STAGES, "frontend"}),
    ],
    ids=["a stage's", "the frontend's", "the model's"],
)
def test_a_log_level_restarts_what_it_is_about(
    toy: World, change: Callable[[Object], None], restarted: set[str]
) -> None:
    before = toy.pod_ages("toy")
    toy.edit("toy", lambda model: change(model["spec"]))
    after = settled(toy)
    assert {name for name in before if before[name] != after[name]} == restarted


def _stage_files(world: World, stage: str) -> list[str]:
    files = [name for name in world.children("configmaps", "toy") if name.startswith(f"toy-{stage}-")]
    return files if len(files) == 1 else []


@pytest.mark.case("operator:B11")
def test_a_sampling_edit_changes_the_stage_table_and_restarts_nothing(toy: World) -> None:
    before, table = toy.pod_ages("toy"), toy.children("configmaps", "toy")["toy-stage-table"]
    toy.edit("toy", denoiser_with(sampling={"steps": 3}))
    eventually(
        "the table is new",
        lambda: toy.children("configmaps", "toy")["toy-stage-table"]["data"] != table["data"],
    )
    assert settled(toy) == before


@pytest.mark.case("operator:B12")
def test_scaling_a_stage_adds_a_replica_and_restarts_nothing(toy: World) -> None:
    before = toy.pod_ages("toy")
    toy.edit("toy", denoiser_with(replicas=3))
    after = settled(toy)
    assert len(after["denoiser"]) == 3
    assert all(before[name] <= after[name] for name in before)


@pytest.mark.case("operator:D09")
@pytest.mark.case("operator:D12")
@pytest.mark.case("operator:D13")
def test_an_upgraded_operator_restarts_nothing(a_world: World, make_operator: MakeOperator) -> None:
    operator = make_operator().start()
    a_world.create("toy", a_spec())
    a_world.wait_ready("toy")
    before, children = a_world.pod_ages("toy"), a_world.all_children("toy")
    operator.stop()
    accelerators = operator.settings["accelerators"]
    profiles = {name: {**profile, "image": "runtime:2"} for name, profile in accelerators["profiles"].items()}
    upgraded = make_operator(
        "operator-1",
        accelerators={**accelerators, "profiles": profiles},
        frontend={**operator.settings["frontend"], "image": "frontend:2", "env": {"NEW": "1"}},
    )
    upgraded.start()
    a_world.edit("toy", denoiser_with(sampling={"steps": 5}))
    eventually(
        "the new operator has seen the edit",
        lambda: '"steps":5' in a_world.children("configmaps", "toy")["toy-stage-table"]["data"]["stage-table.json"],
    )
    assert settled(a_world) == before
    assert a_world.all_children("toy") == children

    a_world.edit(
        "toy",
        lambda model: model["metadata"].setdefault("annotations", {}).update({"serving.omnimodel.dev/refresh": "1"}),
    )
    eventually(
        "a refresh brings the new images",
        lambda: all(
            one["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":2")
            for one in a_world.children("deployments", "toy").values()
        ),
    )


@pytest.mark.case("operator:G10")
def test_a_removed_stage_leaves_nothing(toy: World) -> None:
    def remove(model: Object) -> None:
        model["spec"] = a_spec(a_stage("encoder"), a_stage("decoder"))

    toy.edit("toy", remove)
    eventually(
        "nothing of the denoiser is left", lambda: not [one for one in toy.all_children("toy") if "denoiser" in one]
    )
    toy.wait_ready("toy")


@pytest.mark.case("operator:G01")
@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_deleting_a_model_removes_all_of_it(toy: World, propagation: str) -> None:
    path = f"/apis/serving.omnimodel.dev/v1alpha1/namespaces/{toy.namespace}/omnimodels/toy"
    toy.plane.rest.call("DELETE", path, {"propagationPolicy": propagation})
    eventually("no child is left", lambda: not toy.all_children("toy"))
    eventually("no pod is left", lambda: not toy.pods("toy"))


@pytest.mark.case("operator:G02")
def test_a_model_goes_while_the_operator_is_away(toy: World, operator: Operator) -> None:
    operator.stop()
    toy.delete("toy")
    eventually("no child is left", lambda: not toy.all_children("toy"))


@pytest.mark.case("operator:A14")
def test_a_model_made_anew_at_once_under_its_old_name_gets_its_children(toy: World) -> None:
    old = {name: one["metadata"]["uid"] for name, one in toy.children("deployments", "toy").items()}
    toy.delete("toy")
    toy.create("toy", a_spec())
    toy.wait_ready("toy")
    new = {name: one["metadata"]["uid"] for name, one in toy.children("deployments", "toy").items()}
    assert new.keys() == old.keys()
    assert not set(new.values()) & set(old.values())


@pytest.mark.case("operator:G14")
def test_an_object_of_somebody_else_is_refused_by_name(a_world: World, operator: Operator) -> None:
    path = f"/api/v1/namespaces/{a_world.namespace}/services"
    service = {"metadata": {"name": "toy-denoiser"}, "spec": {"ports": [{"port": 1}], "selector": {"app": "mine"}}}
    a_world.plane.rest.post(path, service)
    a_world.create("toy", a_spec())
    eventually("the model is Stalled", lambda: a_world.condition("toy", "Stalled") == "True")
    stalled = next(one for one in a_world.model("toy")["status"]["conditions"] if one["type"] == "Stalled")
    assert "Service toy-denoiser" in stalled["message"]
    live = a_world.plane.rest.get(f"{path}/toy-denoiser")
    assert live["spec"]["selector"] == {"app": "mine"}
    assert "ownerReferences" not in live["metadata"]


def test_a_suspended_model_gives_its_devices_back(toy: World) -> None:
    toy.edit("toy", lambda model: model["spec"].update({"suspend": True}))
    eventually("only the frontend is left", lambda: set(toy.pod_ages("toy")) == {"frontend"})
    eventually("the phase says so", lambda: toy.model("toy")["status"]["phase"] == "Suspended")
    toy.edit("toy", lambda model: model["spec"].update({"suspend": False}))
    toy.wait_ready("toy")


def test_every_child_is_owned_by_the_model(toy: World) -> None:
    uid = toy.model("toy")["metadata"]["uid"]
    for plural in CHILDREN:
        for child in toy.children(plural, "toy").values():
            assert [owner["uid"] for owner in child["metadata"]["ownerReferences"]] == [uid]
            assert "finalizers" not in child["metadata"]
    assert "finalizers" not in toy.model("toy")["metadata"]
    assert set(toy.model("toy")["metadata"].get("annotations", {})) == set()


def test_the_children_pass_restricted_pod_security(a_world: World, operator: Operator) -> None:
    path = f"/api/v1/namespaces/{a_world.namespace}"
    namespace = a_world.plane.rest.get(path)
    namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    a_world.plane.rest.call("PUT", path, namespace)
    stages = [a_stage("on-nvidia", "h200"), a_stage("on-rocm", "mi300"), a_stage("on-ascend", "ascend910")]
    a_world.create("secure", a_spec(*stages))
    a_world.wait_ready("secure")


@pytest.mark.case("operator:K04")
def test_an_operator_of_one_namespace_leaves_the_others_alone(
    a_world: World, another_world: World, make_operator: MakeOperator
) -> None:
    make_operator(watchNamespaces=[a_world.namespace]).start()
    another_world.create("toy", a_spec(a_stage("denoiser")))
    a_world.create("toy", a_spec(a_stage("denoiser")))
    a_world.wait_ready("toy")
    assert another_world.all_children("toy") == set()

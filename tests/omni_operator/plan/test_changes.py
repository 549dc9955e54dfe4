"""What is written, what is pruned, and what is never touched."""

import copy

import pytest

from omni_operator.objects import Manifest, Ref, ref_of
from omni_operator.plan.changes import Changes, changes_of
from tests.support.fake_kube import rolled_out
from tests.support.operator_models import a_model, a_spec, a_stage, child, children_of

UID = "uid-1"


def live(children: list[Manifest]) -> list[Manifest]:
    """The children as the server has them once all is rolled out."""
    result = copy.deepcopy(children)
    for number, one in enumerate(result):
        one["metadata"] |= {"uid": f"child-{number}", "generation": 1}
        if one["kind"] == "Deployment":
            one["status"] = rolled_out(one)
    return result


@pytest.fixture
def desired() -> list[Manifest]:
    return children_of(a_model())


def edited(**fields: object) -> list[Manifest]:
    """The children after the denoiser was edited."""
    stages = [a_stage(name, **(fields if name == "denoiser" else {})) for name in ("encoder", "denoiser", "decoder")]
    return children_of(a_model(a_spec(*stages)))


def names(manifests: tuple[Manifest, ...]) -> set[str]:
    return {str(ref_of(one)) for one in manifests}


def test_everything_is_applied_to_a_new_model(desired: list[Manifest]) -> None:
    assert changes_of(desired, [], UID).apply == tuple(desired)


def test_the_record_is_applied_first_and_workloads_last(desired: list[Manifest]) -> None:
    kinds = [one["kind"] for one in changes_of(desired, [], UID).apply]
    assert kinds[0] == "ControllerRevision"
    assert set(kinds[-4:]) == {"Deployment"}


def test_nothing_changes_if_all_is_there(desired: list[Manifest]) -> None:
    assert changes_of(desired, live(desired), UID).is_empty


@pytest.mark.case("operator:M18")
def test_a_missing_child_is_applied(desired: list[Manifest]) -> None:
    there = [one for one in live(desired) if ref_of(one) != ref_of(child(desired, "Service", "toy-denoiser"))]
    assert names(changes_of(desired, there, UID).apply) == {"Service toy-denoiser"}


@pytest.mark.case("operator:C16")
def test_an_edit_of_one_stage_touches_only_its_workload(desired: list[Manifest]) -> None:
    changes = changes_of(edited(maxBatchSize=4), live(desired), UID)
    kinds = {
        (one["kind"], one["metadata"].get("labels", {}).get("serving.omnimodel.dev/component")) for one in changes.apply
    }
    assert kinds == {
        ("ControllerRevision", None),
        ("ConfigMap", "denoiser"),
        ("ConfigMap", "frontend"),
        ("Deployment", "denoiser"),
    }


def test_a_replicas_edit_touches_only_the_replicas(desired: list[Manifest]) -> None:
    changes = changes_of(edited(replicas=3), live(desired), UID)
    assert names(changes.apply) == {"Deployment toy-denoiser"}
    assert changes.apply[0]["spec"]["template"] == child(desired, "Deployment", "toy-denoiser")["spec"]["template"]


def test_a_sampling_edit_touches_only_the_stage_table(desired: list[Manifest]) -> None:
    assert names(changes_of(edited(sampling={"steps": 3}), live(desired), UID).apply) == {"ConfigMap toy-stage-table"}


@pytest.mark.case("operator:G10")
def test_children_of_a_removed_stage_are_deleted(desired: list[Manifest]) -> None:
    without = children_of(a_model(a_spec(a_stage("encoder"), a_stage("decoder"))))
    deleted = names(changes_of(without, live(desired), UID).delete)
    assert {"Deployment toy-denoiser", "Service toy-denoiser"} <= deleted


@pytest.mark.case("operator:D04")
def test_an_old_stage_file_stays_until_the_last_old_pod_is_gone(desired: list[Manifest]) -> None:
    wanted, there = edited(maxBatchSize=4), live(desired)
    assert changes_of(wanted, there, UID).delete == ()

    halfway = [*there, *live(wanted)[:0], *(one for one in live(wanted) if one["kind"] != "Deployment")]
    assert changes_of(wanted, halfway, UID).delete == ()

    done = {ref_of(one): one for one in [*there, *live(wanted)]}
    assert names(changes_of(wanted, done.values(), UID).delete) == {
        str(ref_of(one))
        for one in desired
        if one["kind"] == "ConfigMap" and one["metadata"]["name"].startswith("toy-denoiser-")
    }


def test_three_revisions_are_kept(desired: list[Manifest]) -> None:
    revision = desired[0]
    history = [
        {**revision, "revision": number, "metadata": {**revision["metadata"], "name": f"toy-{number}"}}
        for number in range(1, 6)
    ]
    wanted = [history[-1], *desired[1:]]
    changes = changes_of(wanted, live([*history, *desired[1:]]), UID)
    assert names(changes.delete) == {"ControllerRevision toy-1", "ControllerRevision toy-2"}


@pytest.mark.case("operator:G14")
@pytest.mark.case("operator:G09")
@pytest.mark.case("operator:A22")
def test_an_object_of_somebody_else_is_refused_and_left_alone(desired: list[Manifest]) -> None:
    stranger = {**child(live(desired), "Service", "toy-denoiser")}
    stranger["metadata"] = {"name": "toy-denoiser", "namespace": "team", "uid": "x", "labels": {}}
    there = [one for one in live(desired) if ref_of(one) != ref_of(stranger)]
    changes = changes_of(desired, [*there, stranger], UID)
    assert changes == Changes(foreign=(ref_of(stranger),))


def test_an_unwanted_object_of_somebody_else_is_not_deleted(desired: list[Manifest]) -> None:
    stranger = {**desired[1], "metadata": {"name": "other", "namespace": "team", "uid": "x"}}
    assert changes_of(desired, [*live(desired), stranger], UID).is_empty


@pytest.mark.case("operator:A14")
def test_an_object_of_a_deleted_model_of_the_same_name_is_waited_for(desired: list[Manifest]) -> None:
    changes = changes_of(desired, live(desired), "another uid")
    assert not changes.apply
    assert not changes.foreign
    assert Ref(changes.leaving[0].kind, desired[0]["metadata"]["name"]) in changes.leaving


def test_a_master_stays_until_the_last_pod_that_may_join_it_is_gone() -> None:
    spec = a_spec(connectors=[{"name": "store", "mooncakeStore": {"managed": True}}])
    before = children_of(a_model({**spec, "edges": [{**edge, "connector": "store"} for edge in spec["edges"]]}))
    wanted = children_of(a_model())
    master = {f"{kind} toy-connector-store-master" for kind in ("Service", "Deployment")}
    assert not master & names(changes_of(wanted, live(before), UID).delete)
    done = {ref_of(one): one for one in [*live(before), *live(wanted)]}
    assert master <= names(changes_of(wanted, done.values(), UID).delete)

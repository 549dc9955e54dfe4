"""When an object on the server counts as another than the one that we ask for."""

import copy
from typing import Any

import pytest

from omni_operator import labels
from omni_operator.objects import Manifest
from omni_operator.plan.diff import differs
from tests.support.operator_models import a_model, a_spec, a_stage, child, children_of


@pytest.fixture
def desired() -> Manifest:
    model = a_model(a_spec(a_stage("denoiser", resources={"cpu": "0.5", "memory": "1Gi"})))
    return child(children_of(model), "Deployment", "toy-denoiser")


def changed(manifest: Manifest, path: str, value: Any) -> Manifest:
    """A copy in which the value at one place, "spec/replicas", is another; "~" stands for a slash in a key."""
    result = copy.deepcopy(manifest)
    *parents, last = [int(key) if key.isdigit() else key.replace("~", "/") for key in path.split("/")]
    place: Any = result
    for key in parents:
        place = place[key]
    place[last] = value
    return result


def test_an_object_does_not_differ_from_itself(desired: Manifest) -> None:
    assert not differs(desired, desired)


@pytest.mark.case("operator:A02")
@pytest.mark.case("operator:D02")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec/template/spec/restartPolicy", "Always"),
        ("spec/template/spec/containers/0/terminationMessagePath", "/dev/termination-log"),
        ("spec/template/spec/containers/0/startupProbe/successThreshold", 1),
        ("metadata/annotations/deployment.kubernetes.io~revision", "3"),
        ("status", {"replicas": 3}),
    ],
)
def test_what_the_server_fills_in_is_no_difference(desired: Manifest, path: str, value: Any) -> None:
    assert not differs(desired, changed(desired, path, value))


@pytest.mark.case("operator:A02")
def test_another_spelling_of_a_quantity_is_no_difference(desired: Manifest) -> None:
    asked = changed(desired, "spec/template/spec/containers/0/resources/limits/memory", "1024Mi")
    kept = changed(desired, "spec/template/spec/containers/0/resources/limits/memory", "1Gi")
    assert not differs(asked, kept)


@pytest.mark.case("operator:L04")
def test_an_injected_container_is_no_difference(desired: Manifest) -> None:
    live = copy.deepcopy(desired)
    live["spec"]["template"]["spec"]["containers"].append({"name": "sidecar", "image": "other"})
    assert not differs(desired, live)


@pytest.mark.case("operator:L07")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec/replicas", 7),
        ("spec/template/spec/containers/0/image", "another"),
        ("spec/template/spec/containers/0/command", ["sleep"]),
        ("spec/template/spec/enableServiceLinks", True),
        ("spec/template/spec/securityContext/runAsUser", 0),
        ("spec/template/spec/containers/0/resources/limits/memory", "1Ti"),
        ("metadata/labels/app.kubernetes.io~managed-by", "somebody"),
        ("metadata/ownerReferences", []),
    ],
)
def test_a_changed_value_of_ours_is_a_difference(desired: Manifest, path: str, value: Any) -> None:
    assert differs(desired, changed(desired, path, value))


def test_a_field_that_we_no_longer_ask_for_is_a_difference(desired: Manifest) -> None:
    assert differs(desired, changed(desired, "metadata/annotations", {labels.APPLIED: "hash of an earlier wish"}))

"""The master of a managed store: its manifests, and what stages are told of it."""

import json
from collections.abc import Callable
from typing import Any

from omni_operator.build.children import replicas_of
from omni_operator.objects import Manifest
from omni_operator.plan.names import NAME_LIMIT
from omni_operator.plan.observe import Owner
from tests.support.operator_models import a_model, a_spec, a_stage, child, children_of, resolved, some_settings

COMPONENT = "serving.omnimodel.dev/component"
MASTER = "toy-connector-store-master"
STORE = {"name": "store", "mooncakeStore": {"managed": True, "segmentSize": "64Mi"}}


def with_store(*stages: dict[str, Any], connector: str = "store", **fields: Any) -> dict[str, Any]:
    """A chain whose every edge takes the store."""
    spec = a_spec(*stages, connectors=[{**STORE, "name": connector}], **fields)
    return {**spec, "edges": [{**edge, "connector": connector} for edge in spec["edges"]]}


def of_master(children: list[Manifest]) -> list[Manifest]:
    return [one for one in children if one["metadata"]["labels"].get(COMPONENT) == "connector-store-master"]


def test_the_master_of_a_managed_store(golden: Callable[[str, list[Manifest]], None]) -> None:
    golden("master", of_master(children_of(a_model(with_store()))))


def test_stages_are_told_the_service_of_their_master() -> None:
    children = children_of(a_model(with_store()))
    service = child(children, "Service", MASTER)
    files = [one for one in children if one["kind"] == "ConfigMap" and "stage.json" in one["data"]]
    stores = [json.loads(one["data"]["stage.json"])["connectors"][0]["mooncakeStore"] for one in files]
    assert {store["master"] for store in stores} == {f"{MASTER}.team.svc:{service['spec']['ports'][0]['port']}"}
    assert not any(store["managed"] for store in stores)


def test_a_master_takes_no_device_of_the_stages_whose_image_it_runs() -> None:
    stages = [a_stage("encoder", "h200"), a_stage("denoiser", "h200")]
    pod = child(children_of(a_model(with_store(*stages))), "Deployment", MASTER)["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "runtime-cuda:1"
    assert "nvidia.com/gpu" not in pod["containers"][0]["resources"]["limits"]
    assert "runtimeClassName" not in pod


def test_there_are_never_two_masters_with_different_books() -> None:
    children = children_of(a_model(with_store()))
    assert child(children, "Deployment", MASTER)["spec"]["strategy"] == {"type": "Recreate"}
    assert child(children, "Deployment", MASTER)["spec"]["replicas"] == 1


def test_the_administrator_says_what_masters_may_use() -> None:
    settings = some_settings(masters={"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}})
    deployment = child(children_of(a_model(with_store()), settings), "Deployment", MASTER)
    resources = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}


def test_a_suspended_model_needs_no_master() -> None:
    owner = Owner("toy", "team", "uid-1", created=0, is_suspended=True)
    assert replicas_of(resolved(a_model(with_store())), owner)["connector-store-master"] == 0


def test_no_stage_can_have_a_master_s_name_and_long_names_fit() -> None:
    longest = "s" * 30
    children = children_of(a_model(with_store(connector=longest), name="m" * 30))
    assert all(len(one["metadata"]["name"]) <= NAME_LIMIT for one in children)
    assert len("connector-s-master") > 15


def test_without_a_managed_store_there_is_no_master() -> None:
    foreign = {"name": "store", "mooncakeStore": {"master": "10.0.0.1:50051"}}
    spec = {**with_store(), "connectors": [foreign]}
    assert of_master(children_of(a_model(spec))) == []
    assert of_master(children_of(a_model(a_spec(connectors=[STORE])))) == []

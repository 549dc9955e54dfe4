"""The operator's view of the cluster."""

import pytest

from omni_operator.kube.store import Store
from omni_operator.objects import OMNI_MODEL, SERVICE, Manifest, ModelKey
from tests.support.operator_models import a_model

KEY = ModelKey("team", "toy")


@pytest.fixture
def woken() -> list[ModelKey]:
    return []


@pytest.fixture
def store(woken: list[ModelKey]) -> Store:
    return Store(lambda key, kind: woken.append(key))


def a_service(version: int, name: str = "toy-denoiser", namespace: str = "team", model: str = "toy") -> Manifest:
    labels = {"serving.omnimodel.dev/model": model}
    metadata = {"name": name, "namespace": namespace, "labels": labels, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata}


def services(store: Store, key: ModelKey = KEY) -> list[str]:
    return [child["metadata"]["resourceVersion"] for child in store.observe(key).children]


def test_a_model_and_its_children_are_observed_together(store: Store) -> None:
    store.put(a_model())
    store.put(a_service(5))
    store.put(a_service(6, name="other-x", model="other"))
    observed = store.observe(KEY)
    assert observed.resource["metadata"]["name"] == "toy"
    assert [child["metadata"]["name"] for child in observed.children] == ["toy-denoiser"]


def test_a_change_wakes_the_model(store: Store, woken: list[ModelKey]) -> None:
    store.put(a_service(5))
    assert woken == [KEY]


def about(pod: str, version: int = 9, namespace: str = "team") -> Manifest:
    metadata = {"name": f"{pod}.{version}", "namespace": namespace, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": {"name": pod}}


def test_an_event_belongs_to_the_model_of_its_pod(store: Store, woken: list[ModelKey]) -> None:
    pod = {**a_service(5, name="toy-denoiser-abc"), "kind": "Pod"}
    store.put(pod)
    for event in (about("toy-denoiser-abc"), about("somebody-else-s"), about("toy-denoiser-abc", namespace="other")):
        store.put(event)
    assert woken == [KEY, KEY]
    assert [event["metadata"]["namespace"] for event in store.observe(KEY).events] == ["team"]
    gone = about("toy-denoiser-abc")
    store.remove({**gone, "metadata": {**gone["metadata"], "resourceVersion": "12"}})
    assert store.observe(KEY).events == []


def test_news_that_is_old_is_no_news(store: Store, woken: list[ModelKey]) -> None:
    store.put(a_service(5))
    store.put(a_service(5))
    store.put(a_service(4))
    assert (woken, services(store)) == ([KEY], ["5"])


@pytest.mark.case("operator:A15")
def test_the_answer_to_our_own_write_is_known_at_once_and_wakes_nobody(store: Store, woken: list[ModelKey]) -> None:
    store.remember(a_service(7))
    store.put(a_service(6))
    store.put(a_service(7))
    assert (woken, services(store)) == ([], ["7"])


def test_a_deleted_object_is_forgotten(store: Store, woken: list[ModelKey]) -> None:
    store.put(a_service(5))
    store.remove(a_service(6))
    assert (woken, services(store)) == ([KEY, KEY], [])


def test_a_late_deletion_does_not_hit_the_successor(store: Store) -> None:
    store.put(a_service(9))
    store.remove(a_service(6))
    assert services(store) == ["9"]


@pytest.mark.case("operator:M02")
@pytest.mark.case("operator:G15")
def test_a_list_tells_of_deletions_that_nobody_saw(store: Store, woken: list[ModelKey]) -> None:
    for number in range(3):
        store.put(a_service(5, name=f"toy-{number}"))
    woken.clear()
    store.replace(SERVICE, None, [a_service(5, name="toy-1")], "20")
    assert [child["metadata"]["name"] for child in store.observe(KEY).children] == ["toy-1"]
    assert woken == [KEY, KEY]


def test_a_list_does_not_delete_what_is_newer_than_it(store: Store) -> None:
    store.remember(a_service(30))
    store.replace(SERVICE, None, [], "20")
    assert services(store) == ["30"]


def test_a_list_of_one_namespace_says_nothing_of_another(store: Store) -> None:
    store.put(a_service(5, namespace="other"))
    store.replace(SERVICE, "team", [], "20")
    assert services(store, ModelKey("other", "toy")) == ["5"]


def test_a_list_of_one_kind_says_nothing_of_another(store: Store) -> None:
    store.put(a_service(5))
    store.replace(OMNI_MODEL, None, [a_model()], "20")
    assert services(store) == ["5"]


def test_field_managers_are_not_kept(store: Store) -> None:
    service = a_service(5)
    service["metadata"]["managedFields"] = [{"manager": "x"}]
    store.put(service)
    assert "managedFields" not in store.observe(KEY).children[0]["metadata"]

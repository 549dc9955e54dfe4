"""What the informers last saw, and what we wrote since: every model, its children, its pods and events about them."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from omni_contract.wire import names as wire
from omni_operator.objects import CHILD_KINDS, EVENT, OMNI_MODEL, POD, Kind, Manifest, ModelKey, kind_of, labels_of
from omni_operator.plan.observe import Observed


class Store:
    """Objects by kind and model. `on_change` is told of each change: whose, and of which kind of object."""

    def __init__(self, on_change: Callable[[ModelKey, Kind], None]) -> None:
        self._objects: dict[Kind, dict[ModelKey, dict[str, Manifest]]] = defaultdict(lambda: defaultdict(dict))
        self._on_change = on_change

    def observe(self, key: ModelKey) -> Observed:
        pods = self._of(POD, key)
        return Observed(
            model=self._of(OMNI_MODEL, key).get(key.name),
            children=[child for kind in CHILD_KINDS for child in self._of(kind, key).values()],
            pods=list(pods.values()),
            events=[event for event in self._events(key.namespace) if subject_of(event) in pods],
        )

    def models(self) -> list[ModelKey]:
        return [key for key, models in self._objects[OMNI_MODEL].items() if models]

    def put(self, item: Manifest) -> None:
        """Takes an object in, unless a newer state of it is known, and tells of the change."""
        if self._remember(item):
            self._tell(item)

    def remember(self, item: Manifest) -> None:
        """Takes in the answer to a write of our own, so that the next pass need not wait for the watch to bring it."""
        self._remember(item)

    def remove(self, item: Manifest) -> None:
        """Forgets a deleted object; a newer one of the same name stays."""
        key, name = model_of(item), item["metadata"]["name"]
        known = self._of(kind_of(item), key).get(name)
        if known is not None and version_of(known) <= version_of(item):
            del self._objects[kind_of(item)][key][name]
            self._tell(item)

    def replace(self, kind: Kind, namespace: str | None, items: Iterable[Manifest], resource_version: str) -> None:
        """Takes in a whole list: what it lacks was deleted while nobody watched, unless it is newer than the list."""
        listed = {(model_of(item), item["metadata"]["name"]) for item in items}
        for item in items:
            self.put(item)
        for key, known in [(key, item) for key, by_name in self._objects[kind].items() for item in by_name.values()]:
            is_covered = namespace is None or key.namespace == namespace
            if (
                is_covered
                and (key, known["metadata"]["name"]) not in listed
                and version_of(known) <= int(resource_version)
            ):
                self.remove(known)

    def _tell(self, item: Manifest) -> None:
        keys = self._models_with_pod(item) if kind_of(item) is EVENT else [model_of(item)]
        for key in keys:
            self._on_change(key, kind_of(item))

    def _models_with_pod(self, event: Manifest) -> list[ModelKey]:
        namespace, pod = event["metadata"]["namespace"], subject_of(event)
        return [key for key, pods in self._objects[POD].items() if key.namespace == namespace and pod in pods]

    def _events(self, namespace: str) -> Iterable[Manifest]:
        """They bear no label, so they are kept by their namespace."""
        return self._of(EVENT, ModelKey(namespace, "")).values()

    def _of(self, kind: Kind, key: ModelKey) -> dict[str, Manifest]:
        return self._objects[kind].get(key, {})

    def _remember(self, item: Manifest) -> bool:
        """Whether the object is news."""
        of_model = self._objects[kind_of(item)][model_of(item)]
        known = of_model.get(item["metadata"]["name"])
        if known is not None and version_of(item) <= version_of(known):
            return False
        of_model[item["metadata"]["name"]] = slim(item)
        return True


def model_of(item: Manifest) -> ModelKey:
    metadata = item["metadata"]
    name = metadata["name"] if kind_of(item) is OMNI_MODEL else labels_of(item).get(wire.LABEL_MODEL, "")
    return ModelKey(metadata["namespace"], name)


def subject_of(event: Manifest) -> str:
    """Name of the object that an event is about."""
    name: str = event["involvedObject"]["name"]
    return name


def version_of(item: Manifest) -> int:
    """Since Kubernetes 1.35 clients may compare the versions of one resource as numbers."""
    return int(item["metadata"]["resourceVersion"])


def slim(item: Manifest) -> Manifest:
    """Without the field managers' book-keeping, which is the bulk of many objects and which nobody here reads."""
    metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
    return {**item, "metadata": metadata}

"""What is there of one model: the value that everything else in `plan` looks at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from omni_contract.wire import names as wire
from omni_operator import labels
from omni_operator.objects import DEPLOYMENT, Manifest, annotations_of, kind_of, labels_of
from omni_operator.plan.changes import is_owned


@dataclass(frozen=True)
class Owner:
    """The OmniModel that owns the children."""

    name: str
    namespace: str
    uid: str
    created: int
    """Unix seconds."""
    is_suspended: bool = False


@dataclass(frozen=True)
class Observed:
    """One model, its children (ours or not, by our label) and its pods, as the informers last saw them."""

    model: Manifest | None
    children: list[Manifest] = field(default_factory=list)
    pods: list[Manifest] = field(default_factory=list)
    events: list[Manifest] = field(default_factory=list)
    """About the pods."""

    @property
    def is_wanted(self) -> bool:
        """A model that is gone or going needs nothing: its children leave by garbage collection."""
        return self.model is not None and not self.model["metadata"].get("deletionTimestamp")

    @cached_property
    def owner(self) -> Owner:
        metadata = self.resource["metadata"]
        return Owner(
            name=metadata["name"],
            namespace=metadata["namespace"],
            uid=metadata["uid"],
            created=int(datetime.fromisoformat(metadata["creationTimestamp"]).timestamp()),
            is_suspended=bool(self.spec.get("suspend", False)),
        )

    @property
    def spec(self) -> Manifest:
        spec: Manifest = self.resource.get("spec") or {}
        return spec

    @property
    def generation(self) -> int:
        generation: int = self.resource["metadata"].get("generation", 0)
        return generation

    @property
    def status(self) -> Manifest:
        status: Manifest = self.resource.get("status") or {}
        return status

    @property
    def refresh(self) -> str | None:
        return annotations_of(self.resource).get(labels.REFRESH)

    @cached_property
    def owned_children(self) -> list[Manifest]:
        return [child for child in self.children if is_owned(child, self.resource["metadata"]["uid"])]

    @cached_property
    def deployments(self) -> Mapping[str, Manifest]:
        """The model's own, by component."""
        return {
            labels_of(child).get(wire.LABEL_COMPONENT, ""): child
            for child in self.owned_children
            if kind_of(child) is DEPLOYMENT
        }

    def pods_of(self, component: str) -> list[Manifest]:
        return [pod for pod in self.pods if labels_of(pod).get(wire.LABEL_COMPONENT) == component]

    @property
    def resource(self) -> Manifest:
        if self.model is None:
            raise LookupError("the model is gone")
        return self.model

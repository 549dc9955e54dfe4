"""The backends that the suite runs over: connectors as edges choose them, and what each is able to do."""

from dataclasses import dataclass
from typing import Any

from omni_contract.api.v1alpha1 import ConnectorSpec


@dataclass(frozen=True)
class Backend:
    """`title` is what the test's name says."""

    title: str
    connector: str
    settings: tuple[dict[str, Any], ...] = ()
    """Entries of the model's `connectors`."""
    carries_a_gibibyte: bool = False
    is_read_in_place: bool = False
    """Consumers read the owner's memory: its arrays are read-only, and an owner that is stopped is not noticed."""
    uses: str = ""
    """The connector that handles of large payloads name, if another one than `connector`."""

    def __str__(self) -> str:
        return self.title

    @property
    def is_inline(self) -> bool:
        return self.connector == "inline"

    def specs(self, **changes: object) -> tuple[ConnectorSpec, ...]:
        """Its settings, with changes in the one block of each."""
        return tuple(ConnectorSpec.model_validate(_changed(entry, changes)) for entry in self.settings)


def _changed(entry: dict[str, Any], changes: dict[str, object]) -> dict[str, Any]:
    return {key: value | changes if isinstance(value, dict) else value for key, value in entry.items()}


SHM = {"name": "shm", "shm": {"size": "80Mi"}}
BACKENDS = (
    Backend("inline", "inline"),
    Backend("grpc", "grpc", carries_a_gibibyte=True),
    Backend("auto between hosts", "auto", uses="grpc"),
    Backend("auto on one host", "auto", (SHM,), is_read_in_place=True),
    Backend("shm", "shm", (SHM,), is_read_in_place=True, carries_a_gibibyte=True),
)

"""The backends that the suite runs over: connectors as edges choose them, and what each is able to do."""

from dataclasses import dataclass
from typing import Any

from omni_contract.api.v1alpha1 import ConnectorSpec
from omni_runtime.local.serve import free_port


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
    sized_by: tuple[str, ...] = ("size",)
    """The settings that say how much it holds."""
    smallest_mib: int = 3
    """How small it can be, of what tests fill to the brim."""
    needs_a_master: bool = False
    pooled_connections: int = 0
    """So many more its library may have open at one time than at another; what leaks grows with every transfer."""
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

    def sized(self, mib: int) -> dict[str, object]:
        """Changes of its settings that let it hold so much."""
        return {name: f"{mib}Mi" for name in self.sized_by} if self.settings else {}


def _changed(entry: dict[str, Any], changes: dict[str, object]) -> dict[str, Any]:
    return {key: value | changes if isinstance(value, dict) else value for key, value in entry.items()}


MASTER = f"127.0.0.1:{free_port('127.0.0.1', 0)}"
"""Where the suite's mooncake_master listens; see conftest."""
SHM = {"name": "shm", "shm": {"size": "80Mi"}}
BACKENDS = (
    Backend("inline", "inline"),
    Backend("grpc", "grpc", carries_a_gibibyte=True),
    Backend("auto between hosts", "auto", uses="grpc"),
    Backend("auto on one host", "auto", (SHM,), is_read_in_place=True),
    Backend("shm", "shm", (SHM,), is_read_in_place=True, carries_a_gibibyte=True),
    Backend(
        "mooncake transfer engine",
        "moon-engine",
        ({"name": "moon-engine", "mooncakeTransferEngine": {"poolSize": "160Mi"}},),
        sized_by=("poolSize",),
        pooled_connections=8,
        carries_a_gibibyte=True,
    ),
    Backend(
        "mooncake store",
        "moon-store",
        ({"name": "moon-store", "mooncakeStore": {"master": MASTER, "segmentSize": "160Mi", "bufferSize": "160Mi"}},),
        sized_by=("segmentSize", "bufferSize"),
        smallest_mib=18,
        pooled_connections=8,
        needs_a_master=True,
    ),
)

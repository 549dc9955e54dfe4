"""What the resource says reaches Mooncake's store, and its codes come back in words."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from omni_contract.api.v1alpha1.mooncake import MooncakeStoreConnector
from omni_runtime.connectors.mooncake.client import Membership, MooncakeStoreClient, StoreError

SETTINGS = MooncakeStoreConnector(
    protocol="rdma", device_name="mlx5_0", metadata_server="http://10.0.0.1:8080/metadata"
)
MEMBERSHIP = Membership(host="10.1.2.3", master="10.0.0.1:50051", segment_bytes=64 * 2**20)


class Library:
    """The store of the wheel, which answers with codes; `code` is that of every call."""

    def __init__(self) -> None:
        self.joined: list[tuple[object, ...]] = []
        self.placements: list[SimpleNamespace] = []
        self.code = 0

    def setup(self, *told: object) -> int:
        self.joined.append(told)
        return self.code

    def get_hostname(self) -> str:
        return "10.1.2.3:15042"

    def put_from(self, key: str, address: int, size_bytes: int, placement: SimpleNamespace) -> int:
        self.placements.append(placement)
        return self.code

    def get_into(self, key: str, address: int, size_bytes: int) -> int:
        return self.code


@pytest.fixture
def library(imported: Callable[[str, SimpleNamespace], None]) -> Library:
    library = Library()
    imported(
        "mooncake.store", SimpleNamespace(MooncakeDistributedStore=lambda: library, ReplicateConfig=SimpleNamespace)
    )
    return library


def test_a_process_joins_the_store_as_its_settings_say(library: Library, devices: Path):
    MooncakeStoreClient(SETTINGS, MEMBERSHIP, devices)
    assert library.joined == [
        ("10.1.2.3", "http://10.0.0.1:8080/metadata", 64 * 2**20, 0, "rdma", "mlx5_0", "10.0.0.1:50051")
    ]


def test_objects_are_pinned_in_the_segment_of_the_process_that_puts_them(library: Library, devices: Path):
    MooncakeStoreClient(SETTINGS, MEMBERSHIP, devices).put("key", 4096, 100)
    assert library.placements == [SimpleNamespace(with_hard_pin=True, preferred_segment="10.1.2.3:15042")]


def test_a_store_that_cannot_be_joined_says_why(library: Library, devices: Path):
    library.code = -900
    with pytest.raises(StoreError, match=r"the master cannot be reached \(code -900\)"):
        MooncakeStoreClient(SETTINGS, MEMBERSHIP, devices)


@pytest.mark.parametrize(("code", "reason"), [(99, "invalid parameters"), (-704, "no such object"), (-1, "unknown")])
def test_an_object_that_is_not_there_or_of_another_size_is_an_error(
    library: Library, devices: Path, code: int, reason: str
):
    client, library.code = MooncakeStoreClient(SETTINGS, MEMBERSHIP, devices), code
    with pytest.raises(StoreError, match=reason):
        client.get("key", 4096, 100)

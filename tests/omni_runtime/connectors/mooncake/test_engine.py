"""What the resource says reaches Mooncake's transfer engine, and what the engine refuses is told in a sentence."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from omni_contract.api.v1alpha1.mooncake import MooncakeTransferEngineConnector
from omni_runtime.connectors.mooncake.engine import NO_BATCH, EngineError, MooncakeEngine, Progress

OVER_RDMA = MooncakeTransferEngineConnector(protocol="rdma", device_name="mlx5_0,mlx5_1")


class Library:
    """The transfer engine of the wheel, which answers with codes."""

    def __init__(self) -> None:
        self.started: list[tuple[str, ...]] = []
        self.starts, self.registers, self.status = 0, 0, 0

    def initialize(self, *told: str) -> int:
        self.started.append(told)
        return self.starts

    def get_rpc_port(self) -> int:
        return 15_042

    def register_memory(self, address: int, size_bytes: int) -> int:
        return self.registers

    def batch_transfer_async_read(self, session: str, *lists: list[int]) -> int:
        return NO_BATCH if session == "nowhere:1" else 7

    def transfer_check_status(self, batch: int) -> int:
        return self.status


@pytest.fixture
def library(imported: Callable[[str, SimpleNamespace], None]) -> Library:
    library = Library()
    imported("mooncake.engine", SimpleNamespace(TransferEngine=lambda: library))
    return library


def test_the_library_is_told_where_and_over_which_devices(library: Library, devices: Path):
    engine = MooncakeEngine(OVER_RDMA, "10.1.2.3", devices)
    assert library.started == [("10.1.2.3", "P2PHANDSHAKE", "rdma", "mlx5_0,mlx5_1")]
    assert engine.session == "10.1.2.3:15042"


def test_an_engine_that_does_not_start_says_what_it_was_told(library: Library, devices: Path):
    library.starts = -1
    with pytest.raises(EngineError, match=r'\(host 10\.1\.2\.3, protocol rdma, devices "mlx5_0,mlx5_1"\)'):
        MooncakeEngine(OVER_RDMA, "10.1.2.3", devices)


def test_memory_that_cannot_be_registered_is_told_by_its_size(library: Library, devices: Path):
    engine, library.registers = MooncakeEngine(OVER_RDMA, "10.1.2.3", devices), -5
    with pytest.raises(EngineError, match="cannot register 1,048,576 bytes"):
        engine.register(4096, 2**20)


def test_a_read_is_under_way_until_it_is_done_or_has_failed(library: Library, devices: Path):
    engine = MooncakeEngine(OVER_RDMA, "10.1.2.3", devices)
    assert engine.begin_read("nowhere:1", 1, 2, 3) == NO_BATCH
    batch = engine.begin_read("10.1.2.4:15000", 1, 2, 3)
    seen = []
    for library.status in (0, 1, -1, 5):
        seen.append(engine.progress(batch))
    assert seen == [Progress.RUNNING, Progress.DONE, Progress.FAILED, Progress.FAILED]

"""The peer: Mooncake's transfer engine as its wheel offers it, without a connector around it."""

import ctypes
import mmap
import time
from collections.abc import Callable
from typing import Any

from omni_contract.api.v1alpha1.mooncake import MooncakeTransferEngineConnector
from omni_runtime.connectors.mooncake.library import load

HOST = "127.0.0.1"
POLL_S = 0.000_2


class RawEngine:
    """An engine with one registered piece of memory, under the same environment as ours."""

    def __init__(self, size_bytes: int) -> None:
        self._engine: Any = load("engine", MooncakeTransferEngineConnector()).TransferEngine()
        _check(self._engine.initialize(HOST, "P2PHANDSHAKE", "tcp", ""))
        self.session = f"{HOST}:{self._engine.get_rpc_port()}"
        self._memory = mmap.mmap(-1, size_bytes)
        self._memory.write(bytes(size_bytes))
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        _check(self._engine.register_memory(self.address, size_bytes))

    def read(self, session: str, remote: int, size_bytes: int) -> None:
        """The call that waits by spinning."""
        _check(self._engine.transfer_sync_read(session, self.address, remote, size_bytes))

    def read_polling(self, session: str, remote: int, size_bytes: int) -> None:
        """The call that returns at once, asked again and again how it goes."""
        batch = self._engine.batch_transfer_async_read(session, [self.address], [remote], [size_bytes])
        assert batch, "the read was refused"
        while not (status := self._engine.transfer_check_status(batch)):
            time.sleep(POLL_S)
        assert status == 1, "the read failed"

    @property
    def ways(self) -> dict[str, Callable[[str, int, int], None]]:
        return {"transfer_sync_read": self.read, "batch_transfer_async_read": self.read_polling}


def _check(code: int) -> None:
    assert code == 0, f"Mooncake answers {code}"

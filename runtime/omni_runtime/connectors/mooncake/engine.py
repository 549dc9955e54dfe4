"""Mooncake's transfer engine as we use it: start a read of another process's memory, then ask how it goes."""

from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from omni_contract.api.v1alpha1.mooncake import MooncakeTransport
from omni_runtime.connectors.mooncake.library import RDMA_DEVICES, check_devices, load
from omni_runtime.connectors.protocol import ConnectorError

PEER_TO_PEER = "P2PHANDSHAKE"
NO_BATCH = 0


class EngineError(ConnectorError):
    """The engine cannot start or cannot register memory; the message says what it was told."""


class Progress(Enum):
    RUNNING = 0
    DONE = 1
    FAILED = 2


class Engine(Protocol):
    @property
    def session(self) -> str:
        """Where other engines find this one: HOST:PORT."""
        ...

    def register(self, address: int, size_bytes: int) -> None: ...

    def begin_read(self, session: str, local: int, remote: int, size_bytes: int) -> int:
        """Blocks while it connects. A number to ask for progress with; NO_BATCH if the other cannot be reached."""
        ...

    def progress(self, batch: int) -> Progress:
        """Does not block. A batch that has ended must not be asked for again."""
        ...

    def close(self) -> None: ...


class MooncakeEngine:
    """The real one. It listens on all interfaces, whatever it is told."""

    def __init__(self, settings: MooncakeTransport, host: str, devices: Path = RDMA_DEVICES) -> None:
        check_devices(settings, devices)
        # The library has no types.
        self._engine: Any = load("engine", settings).TransferEngine()
        if self._engine.initialize(host, PEER_TO_PEER, settings.protocol, settings.device_name) != 0:
            ports = "" if settings.first_port is None else f", ports from {settings.first_port}"
            raise EngineError(
                f"Mooncake's transfer engine does not start (host {host}, protocol {settings.protocol}, devices "
                f'"{settings.device_name}"{ports}); are the devices there, and are two ports free?'
            )
        self.session = f"{host}:{self._engine.get_rpc_port()}"

    def register(self, address: int, size_bytes: int) -> None:
        if self._engine.register_memory(address, size_bytes) != 0:
            raise EngineError(f"Mooncake's transfer engine cannot register {size_bytes:,} bytes of memory")

    def begin_read(self, session: str, local: int, remote: int, size_bytes: int) -> int:
        return int(self._engine.batch_transfer_async_read(session, [local], [remote], [size_bytes]))

    def progress(self, batch: int) -> Progress:
        match self._engine.transfer_check_status(batch):
            case 0:
                return Progress.RUNNING
            case 1:
                return Progress.DONE
            case _:
                return Progress.FAILED

    def close(self) -> None:
        """With its last reference the engine ends, and its threads and ports with it."""
        del self._engine

"""Mooncake's store as we use it: objects go from and into registered memory. Every call blocks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from omni_contract.api.v1alpha1.mooncake import MooncakeStoreConnector
from omni_runtime.connectors.mooncake.library import RDMA_DEVICES, check_devices, load

NO_SUCH_OBJECT = -704
WRONG_SIZE = -600
CODES = {
    -200: "no space",
    WRONG_SIZE: "invalid parameters",
    NO_SUCH_OBJECT: "no such object",
    -706: "the object is in use",
    -800: "the transfer failed",
    -900: "the master cannot be reached",
    -901: "the master does not answer",
}


class StoreError(Exception):
    """The store refuses or fails; the message is its code in words."""

    def __init__(self, code: int) -> None:
        super().__init__(f"{CODES.get(code, 'unknown error')} (code {code})")
        self.code = code


@dataclass(frozen=True)
class Membership:
    """How this process takes part in a store."""

    host: str
    master: str
    segment_bytes: int
    """Memory that it lends; 0 in a process that only reads."""


class StoreClient(Protocol):
    """Calls raise StoreError."""

    def register(self, address: int, size_bytes: int) -> None: ...

    def put(self, key: str, address: int, size_bytes: int) -> None: ...

    def get(self, key: str, address: int, size_bytes: int) -> None:
        """WRONG_SIZE if the object has another size."""
        ...

    def exists(self, key: str) -> bool: ...

    def remove(self, key: str) -> None:
        """At once, even while others read it."""
        ...

    def close(self) -> None: ...


class MooncakeStoreClient:
    """The real one."""

    def __init__(self, settings: MooncakeStoreConnector, membership: Membership, devices: Path = RDMA_DEVICES) -> None:
        check_devices(settings, devices)
        # The library has no types.
        library: Any = load("store", settings)
        self._store: Any = library.MooncakeDistributedStore()
        _checked(
            self._store.setup(
                membership.host,
                settings.metadata_server,
                membership.segment_bytes,
                0,
                settings.protocol,
                settings.device_name,
                membership.master,
            )
        )
        self._placement: Any = library.ReplicateConfig()
        # Payloads are no cache: they stay until they are removed, in the memory of the one who put them.
        self._placement.with_hard_pin = True
        self._placement.preferred_segment = self._store.get_hostname()

    def register(self, address: int, size_bytes: int) -> None:
        _checked(self._store.register_buffer(address, size_bytes))

    def put(self, key: str, address: int, size_bytes: int) -> None:
        _checked(self._store.put_from(key, address, size_bytes, self._placement))

    def get(self, key: str, address: int, size_bytes: int) -> None:
        if _checked(self._store.get_into(key, address, size_bytes)) != size_bytes:
            raise StoreError(WRONG_SIZE)

    def exists(self, key: str) -> bool:
        return _checked(self._store.is_exist(key)) == 1

    def remove(self, key: str) -> None:
        _checked(self._store.remove(key, True))

    def close(self) -> None:
        self._store.close()


def _checked(code: int) -> int:
    if code < 0:
        raise StoreError(code)
    return code

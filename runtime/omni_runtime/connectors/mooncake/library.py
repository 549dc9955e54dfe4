"""The Mooncake wheel. It reads its settings from the environment, and only when it is imported: so that comes late."""

import importlib
import os
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

from omni_contract.api.v1alpha1.mooncake import PORTS_PER_STAGE, MooncakeTransport
from omni_runtime.connectors.protocol import ConnectorError

RDMA_DEVICES = Path("/sys/class/infiniband")
CUDA_BUILDS = ("mooncake-transfer-engine-cuda13", "mooncake-transfer-engine")
EXTRAS = "omni-operator[mooncake-cpu], on a machine with CUDA omni-operator[mooncake-cuda]"

ALWAYS = {
    # Without it every transfer opens a connection of its own, and the ports run out.
    "MC_TCP_ENABLE_CONNECTION_POOL": "1",
    # Without it a worker that was started anew on its predecessor's port is looked for at that one's data port:
    # every read of its payloads then waits for 30 s and fails.
    "MC_TE_METADATA_REFRESH_INTERVAL_SECONDS": "1",
    # Its log lines are not ours; errors reach us as codes.
    "GLOG_minloglevel": "3",
    "MC_LOG_LEVEL": "ERROR",
    "MC_YLT_LOG_LEVEL": "ERROR",
}


def load(module: str, settings: MooncakeTransport) -> ModuleType:
    """Imports mooncake.MODULE under these settings; raises ConnectorError if it or a library it needs is absent."""
    name = f"mooncake.{module}"
    variables = _variables(settings)
    if name not in sys.modules:
        os.environ.update(variables)
    elif not variables.items() <= os.environ.items():
        raise ConnectorError("the connectors over Mooncake of one stage share their ports; give all the same firstPort")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ConnectorError(f'connectors over Mooncake need the package "mooncake"; install {EXTRAS}') from error
    except ImportError as error:
        raise ConnectorError(
            f"the package mooncake lacks a library of the system: {error}; install libibverbs1 and libnuma1"
        ) from error


def reads_gpus() -> bool:
    """Whether the Mooncake that is installed knows the memory of GPUs."""
    return any(_is_installed(name) for name in CUDA_BUILDS)


def _is_installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def check_devices(settings: MooncakeTransport, devices: Path = RDMA_DEVICES) -> None:
    """Raises ConnectorError if there are none for RDMA: the library would take TCP without a word."""
    if settings.protocol != "rdma":
        return
    present = sorted(path.name for path in devices.iterdir()) if devices.is_dir() else []
    absent = [name for name in settings.device_name.split(",") if name and name not in present]
    if not present or absent:
        named = f", and deviceName names {', '.join(absent)}" if absent else ""
        raise ConnectorError(
            f"protocol rdma: {devices} shows {', '.join(present) or 'no device'}{named}; give the container "
            "/dev/infiniband and the capability IPC_LOCK, correct deviceName, or use protocol: tcp"
        )


def _variables(settings: MooncakeTransport) -> Mapping[str, str]:
    if settings.first_port is None:
        return ALWAYS
    last_port = settings.first_port + PORTS_PER_STAGE - 1
    return {**ALWAYS, "MC_MIN_RPC_PORT": str(settings.first_port), "MC_MAX_RPC_PORT": str(last_port)}


def reachable_host(settings: MooncakeTransport, owner: str) -> str:
    """Where the others find this worker: as the settings say, else at the host of its own address."""
    if settings.host is not None:
        return settings.host
    if not owner or owner.startswith("unix:"):
        return "127.0.0.1"
    return owner.rpartition(":")[0]

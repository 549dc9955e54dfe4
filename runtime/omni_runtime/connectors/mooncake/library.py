"""The Mooncake wheel. It reads its settings from the environment, and only when it is imported: so that comes late."""

import importlib
import os
import sys
from collections.abc import Mapping
from types import ModuleType

from omni_contract.api.v1alpha1.mooncake import PORTS_PER_STAGE, MooncakeTransport
from omni_runtime.connectors.protocol import ConnectorError

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

"""The Mooncake wheel is imported late, under our settings, and missed in a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from omni_contract.api.v1alpha1.mooncake import MooncakeTransferEngineConnector
from omni_runtime.connectors.mooncake.library import check_devices, reachable_host
from omni_runtime.connectors.protocol import ConnectorError

LOAD = """
import os
import sys
from omni_contract.api.v1alpha1.mooncake import MooncakeTransferEngineConnector as Settings
from omni_runtime.connectors.mooncake import library
from omni_runtime.connectors.protocol import ConnectorError
sys.modules.update({modules!r})
try:
    library.load("engine", Settings(first_port=20_000))
    library.load("engine", Settings(first_port=20_000))
    names = "MIN_RPC_PORT", "MAX_RPC_PORT", "TCP_ENABLE_CONNECTION_POOL", "TE_METADATA_REFRESH_INTERVAL_SECONDS"
    print(*(os.environ["MC_" + name] for name in names))
    library.load("engine", Settings(first_port=21_000))
except ConnectorError as error:
    print(error)
"""


def loaded(modules: dict[str, None] | None = None) -> list[str]:
    """In a process of its own, since the library reads its settings but once."""
    code = LOAD.format(modules=modules or {})
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.case("runtime:X2", "runtime:K7")
def test_the_library_has_a_connection_pool_the_stages_ports_and_looks_for_restarted_peers():
    assert loaded() == [
        "20000 20127 1 1",
        "the connectors over Mooncake of one stage share their ports; give all the same firstPort",
    ]


def test_a_missing_package_is_named_with_the_extra_that_brings_it():
    (said,) = loaded({"mooncake": None})
    assert said.startswith('connectors over Mooncake need the package "mooncake"; install omni-operator[mooncake-cpu]')


@pytest.mark.parametrize(
    ("present", "named", "refusal"),
    [
        ((), "", "shows no device; give the container"),
        (("mlx5_0",), "mlx5_7,mlx5_0", "shows mlx5_0, and deviceName names mlx5_7; give the container"),
    ],
)
def test_rdma_is_refused_without_its_devices_since_the_library_would_take_tcp(
    tmp_path: Path, present: tuple[str, ...], named: str, refusal: str
):
    for name in present:
        (tmp_path / name).mkdir()
    settings = MooncakeTransferEngineConnector(protocol="rdma", device_name=named)
    with pytest.raises(ConnectorError, match=refusal):
        check_devices(settings, tmp_path)
    check_devices(MooncakeTransferEngineConnector(), tmp_path)


@pytest.mark.parametrize(
    ("host", "owner", "reachable"),
    [
        (None, "unix:/run/denoiser-0.sock", "127.0.0.1"),
        (None, "", "127.0.0.1"),
        (None, "10.1.2.3:50061", "10.1.2.3"),
        ("192.168.7.1", "10.1.2.3:50061", "192.168.7.1"),
    ],
)
def test_others_find_a_worker_where_its_settings_or_its_own_address_say(host: str | None, owner: str, reachable: str):
    assert reachable_host(MooncakeTransferEngineConnector(host=host), owner) == reachable

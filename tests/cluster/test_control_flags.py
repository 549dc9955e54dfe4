from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import control_flags as flags
from tests.cluster.control import free_ports
from tests.cluster.control_files import files_of
from tests.cluster.control_flags import Ports
from tests.cluster.pools import ASCEND, CPU, NVIDIA, ROCM, Pool, nodes
from tests.cluster.ports import is_free

PORTS = Ports(20000)
FILES = files_of(Path("/state"))


def test_every_listener_is_on_loopback_and_on_a_port_of_the_plane() -> None:
    for arguments in (
        flags.apiserver(PORTS, FILES),
        flags.controllers(PORTS, FILES),
        flags.scheduler(PORTS, FILES),
    ):
        assert "--bind-address=127.0.0.1" in arguments
        port = next(int(word.split("=")[1]) for word in arguments if word.startswith("--secure-port="))
        assert port in PORTS.all()
    urls = [word.split("=", 1)[1] for word in flags.etcd(PORTS, FILES) if word.endswith(("20001", "20002"))]
    assert all("https://127.0.0.1:" in url for url in urls)


def test_every_file_is_below_the_state_folder() -> None:
    words = [*flags.etcd(PORTS, FILES), *flags.apiserver(PORTS, FILES), *flags.controllers(PORTS, FILES)]
    paths = [word.split("=", 1)[1] for word in words if "=/" in word]

    assert paths
    assert all(path.startswith("/state/") for path in paths)


def test_the_api_server_checks_rights_nodes_and_pods_and_writes_an_audit_log() -> None:
    arguments = flags.apiserver(PORTS, FILES)

    assert "--authorization-mode=Node,RBAC" in arguments
    assert "--enable-admission-plugins=NodeRestriction,PodSecurity" in arguments
    assert "--audit-log-path=/state/audit.log" in arguments


def test_the_controllers_keep_up_with_a_thousand_objects() -> None:
    assert {"--kube-api-qps=300", "--kube-api-burst=600"} <= set(flags.controllers(PORTS, FILES))


@pytest.mark.parametrize(
    ("pool", "resource"),
    [(NVIDIA, "nvidia.com/gpu"), (ROCM, "amd.com/gpu"), (ASCEND, "huawei.com/Ascend910")],
    ids=["nvidia", "rocm", "ascend"],
)
def test_a_node_of_an_accelerator_pool_has_eight_devices_and_a_taint(pool: Pool, resource: str) -> None:
    for node in nodes((pool,)):
        assert node["status"]["allocatable"][resource] == "8"
        assert node["spec"]["taints"] == [{"key": resource, "value": "present", "effect": "NoSchedule"}]


def test_a_plain_node_has_no_device_and_no_taint() -> None:
    node = next(nodes((CPU,)))

    assert node["spec"] == {}
    assert set(node["status"]["capacity"]) == {"cpu", "memory", "pods", "ephemeral-storage"}


def test_free_ports_are_free() -> None:
    assert all(is_free(port) for port in free_ports().all())

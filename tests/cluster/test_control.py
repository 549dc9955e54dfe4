"""The control plane as tests use it: what it shows, what it refuses, and that nothing of it survives."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.audit import requests
from tests.cluster.control import ControlPlane, Size, free_ports
from tests.cluster.errors import CommandFailed, PortTaken
from tests.cluster.fixtures import control_plane_in
from tests.cluster.pools import POOLS
from tests.cluster.programs import Programs
from tests.cluster.settings import REPOSITORY
from tests.support.process_census import command_lines_naming
from tests.support.waiting import settled

pytestmark = pytest.mark.control

START_AND_HANG = """
import os, sys, time
from pathlib import Path
from tests.cluster.control import Size
from tests.cluster.fixtures import control_plane_in
from tests.cluster.programs import Programs
from tests.cluster.recipes import CONTROL
from tests.cluster.settings import Settings

control_plane_in(Path(sys.argv[1]), Programs(Settings.from_environment(os.environ), CONTROL), Size.API).start()
print("started", flush=True)
time.sleep(600)
"""


def pod(namespace: str, **spec: Any) -> str:
    """A pod that the level `restricted` admits, but for what `spec` changes."""
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "main", "image": "none/such:1", "securityContext": security, **spec.pop("container", {})}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "probe", "namespace": namespace},
            "spec": {"containers": [container], **spec},
        }
    )


def test_the_nodes_of_every_pool_are_ready(control_plane: ControlPlane) -> None:
    listed = json.loads(control_plane.kubectl("get", "nodes", "-o", "json"))["items"]
    ready = {
        node["metadata"]["name"]
        for node in listed
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready" and condition["status"] == "True"
    }

    assert ready == {name for pool in POOLS for name in pool.node_names()}


def test_a_pod_that_asks_for_a_gpu_runs_on_a_node_of_that_pool(control_plane: ControlPlane) -> None:
    control_plane.kubectl("create", "namespace", "gpu")
    spec = {
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "container": {"resources": {"limits": {"nvidia.com/gpu": "4"}}},
    }
    control_plane.kubectl("create", "-f", "-", stdin=pod("gpu", **spec))
    control_plane.kubectl("-n", "gpu", "wait", "--for=condition=Ready", "pod/probe", "--timeout=30s")

    node = control_plane.kubectl("-n", "gpu", "get", "pod", "probe", "-o", "jsonpath={.spec.nodeName}")
    assert node.startswith("fake-nvidia-")


def test_the_audit_log_says_who_did_what(control_plane: ControlPlane) -> None:
    control_plane.kubectl("create", "configmap", "noted")

    seen = list(requests(control_plane.audit_log))
    by_admin = [r for r in seen if r.user == "admin" and r.resource == "configmaps" and r.verb == "create"]
    assert [(r.namespace, r.status, r.stage) for r in by_admin] == [("default", 201, "ResponseComplete")]
    assert all(request.stage != "RequestReceived" for request in seen)


def test_a_user_has_only_the_rights_that_were_given(control_plane: ControlPlane) -> None:
    control_plane.kubectl("create", "role", "reads-pods", "--verb=get,list", "--resource=pods")
    control_plane.kubectl("create", "rolebinding", "reads-pods", "--role=reads-pods", "--user=reader")
    reader = str(control_plane.kubeconfig_for_user("reader"))

    control_plane.kubectl("--kubeconfig", reader, "get", "pods")
    with pytest.raises(CommandFailed, match="cannot list resource"):
        control_plane.kubectl("--kubeconfig", reader, "get", "secrets")


def test_a_service_account_can_log_in(control_plane: ControlPlane) -> None:
    account = control_plane.kubeconfig_for_service_account("default", "default")

    said = json.loads(control_plane.kubectl("--kubeconfig", str(account), "auth", "whoami", "-o", "json"))
    assert said["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"


def test_a_restricted_namespace_refuses_a_privileged_pod(control_plane: ControlPlane) -> None:
    control_plane.kubectl("create", "namespace", "strict")
    control_plane.kubectl("label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted")
    control_plane.kubectl("create", "-f", "-", stdin=pod("strict"))

    with pytest.raises(CommandFailed, match="violates PodSecurity"):
        control_plane.kubectl("create", "-f", "-", stdin=pod("strict", hostNetwork=True))


def test_two_planes_side_by_side_know_nothing_of_each_other(
    make_control_plane: Callable[[Size], ControlPlane],
) -> None:
    one, other = make_control_plane(Size.API), make_control_plane(Size.API)
    one.kubectl("create", "namespace", "only-here")

    assert "only-here" not in other.kubectl("get", "namespaces")
    assert "only-here" in one.kubectl("get", "namespaces")


def test_start_goes_on_after_etcd_and_the_api_server_were_killed(
    make_control_plane: Callable[[Size], ControlPlane],
) -> None:
    plane = make_control_plane(Size.NODES)
    plane.kubectl("create", "namespace", "kept")
    plane.process("etcd").kill()
    plane.kill_apiserver()

    plane.start()

    assert "kept" in plane.kubectl("get", "namespaces")


def test_pods_run_soon_after_the_api_server_was_restarted(make_control_plane: Callable[[Size], ControlPlane]) -> None:
    plane = make_control_plane(Size.NODES)
    plane.restart_apiserver()
    plane.kubectl("create", "-f", "-", stdin=pod("default"))

    plane.kubectl("wait", "--for=condition=Ready", "pod/probe", "--timeout=30s")


def test_stop_leaves_no_process_and_remove_no_file(tmp_path: Path, control_programs: Programs) -> None:
    plane = control_plane_in(tmp_path / "plane", control_programs, Size.NODES)
    plane.start()
    assert len(command_lines_naming(str(plane.state))) == 5

    plane.stop()
    assert command_lines_naming(str(plane.state)) == []
    plane.remove()
    assert not plane.state.exists()


def test_a_killed_test_run_leaves_no_process(tmp_path: Path, control_programs: Programs) -> None:
    state = tmp_path / "plane"
    run = [sys.executable, "-c", START_AND_HANG, str(state)]
    with subprocess.Popen(run, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        assert any("started" in line for line in session.stdout)
        assert len(command_lines_naming(str(state))) == 3
        session.send_signal(signal.SIGKILL)

    assert settled(lambda: command_lines_naming(str(state)), lambda left: not left, within_s=10) == []


def test_a_taken_port_is_named(tmp_path: Path, control_programs: Programs, api_server: ControlPlane) -> None:
    plane = ControlPlane(state=tmp_path / "plane", programs=control_programs, ports=api_server.ports)

    with pytest.raises(PortTaken, match=str(api_server.ports.etcd)):
        plane.start()


def test_free_ports_differ_from_those_in_use(api_server: ControlPlane) -> None:
    assert free_ports().base != api_server.ports.base

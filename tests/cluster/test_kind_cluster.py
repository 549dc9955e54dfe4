"""The kind cluster as tests use it, and that a second one recovers from a crash and leaves nothing behind."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from images import base
from tests.cluster.audit import requests
from tests.cluster.commands import run
from tests.cluster.errors import CommandFailed
from tests.cluster.kind.backend import OwnBackend
from tests.cluster.kind.cluster import KindCluster
from tests.cluster.kind.config import NODE_PORT
from tests.cluster.programs import exclusive
from tests.cluster.settings import Settings
from tests.cluster.steps import Steps
from tests.support.process_census import command_lines_naming
from tests.support.waiting import eventually

pytestmark = pytest.mark.cluster

IMAGE = "localhost/omni-test/python:v1"
# not where it is on the host: a path below /root would be closed to a pod that is not root
VENV = "/opt/venv"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def pod(name: str, namespace: str, *code: str) -> str:
    """A restricted pod that runs the environment's Python from the claim `venv`."""
    folders = {"venv": VENV, "models": "/models"}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 65532,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [
                    {
                        "name": "main",
                        "image": IMAGE,
                        "imagePullPolicy": "Never",
                        "command": [f"{VENV}/bin/python", *code],
                        "securityContext": RESTRICTED,
                        "volumeMounts": [
                            {"name": claim, "mountPath": path, "readOnly": True} for claim, path in folders.items()
                        ],
                    }
                ],
                "volumes": [
                    {"name": claim, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
                    for claim in folders
                ],
            },
        }
    )


def node_port_service(namespace: str, app: str) -> str:
    ports = [{"port": 80, "targetPort": 8000, "nodePort": NODE_PORT}]
    spec = {"type": "NodePort", "selector": {"app": app}, "ports": ports}
    metadata = {"name": app, "namespace": namespace}
    return json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


def load_python(cluster: KindCluster) -> None:
    """A Debian with Python, and nothing else, as an image on the worker."""
    cache = cluster.settings.cache / "images"
    with exclusive(cache / "lock"):  # others may be building images
        tree = base.ensure_tree(cache) / "base.tar"
    cluster.docker("import", str(tree), IMAGE)
    cluster.load([IMAGE])


def output_of(cluster: KindCluster, namespace: str, name: str) -> str:
    done = "--for=jsonpath={.status.phase}=Succeeded"
    try:
        cluster.kubectl("-n", namespace, "wait", done, f"pod/{name}", "--timeout=60s")
    except CommandFailed as late:
        raise AssertionError(cluster.kubectl("-n", namespace, "describe", "pod", name)) from late
    return cluster.kubectl("-n", namespace, "logs", name)


@pytest.fixture(scope="module")
def namespace(kind_cluster: KindCluster) -> Iterator[str]:
    load_python(kind_cluster)
    kind_cluster.make_volumes("volumes-test")
    yield "volumes-test"
    kind_cluster.kubectl("delete", "namespace", "volumes-test", "--wait=true")


def test_both_nodes_are_ready(kind_cluster: KindCluster) -> None:
    nodes = json.loads(kind_cluster.kubectl("get", "nodes", "-o", "json"))["items"]

    assert {node["metadata"]["name"] for node in nodes} == {kind_cluster.control_plane, kind_cluster.worker}


def test_a_second_up_changes_nothing(kind_cluster: KindCluster) -> None:
    before = kind_cluster.docker("ps", "-q", "--no-trunc")

    kind_cluster.up()

    assert kind_cluster.docker("ps", "-q", "--no-trunc") == before


def test_the_audit_log_is_readable_on_the_host(kind_cluster: KindCluster) -> None:
    kind_cluster.kubectl("get", "configmap", "audit-probe", "--ignore-not-found")

    assert any(request.name == "audit-probe" for request in requests(kind_cluster.audit_log))


def test_a_restricted_pod_runs_python_from_the_environment(kind_cluster: KindCluster, namespace: str) -> None:
    code = "import sys, pydantic; print(sys.prefix, pydantic.__file__)"
    kind_cluster.kubectl("create", "-f", "-", stdin=pod("runs", namespace, "-c", code))

    prefix, package = output_of(kind_cluster, namespace, "runs").split()
    assert prefix == VENV
    assert package.startswith(f"{VENV}/lib/")


def test_a_pod_cannot_write_to_the_volumes(kind_cluster: KindCluster, namespace: str) -> None:
    code = f"""
import errno
for folder in ("{VENV}", "/models"):
    try:
        open(folder + "/written", "w")
    except OSError as refused:
        print(errno.errorcode[refused.errno])
"""
    kind_cluster.kubectl("create", "-f", "-", stdin=pod("writes", namespace, "-c", code))

    assert output_of(kind_cluster, namespace, "writes").split() == ["EROFS", "EROFS"]


def test_volumes_come_back_after_their_namespace_was_deleted(kind_cluster: KindCluster) -> None:
    kind_cluster.make_volumes("volumes-again")
    kind_cluster.kubectl("delete", "namespace", "volumes-again", "--wait=true")

    kind_cluster.make_volumes("volumes-again")

    phases = kind_cluster.kubectl("-n", "volumes-again", "get", "pvc", "-o", "jsonpath={.items[*].status.phase}")
    kind_cluster.kubectl("delete", "namespace", "volumes-again", "--wait=true")
    assert phases == "Bound Bound"


# ---- a cluster of its own, which is broken and removed


@pytest.fixture
def other(cluster_settings: Settings) -> Iterator[KindCluster]:
    settings = replace(cluster_settings, cluster="omni-recovery", kind_api_port=16451, kind_node_port=18081)
    cluster = KindCluster(settings, Steps())
    yield cluster
    cluster.down(wipe=True)


def host_state(settings: Settings) -> dict[str, Any]:
    """What a cluster could leave on the host: links, rules, mounts, namespaces, processes, cgroups, limits."""
    sandbox = OwnBackend(settings, Steps()).sandbox
    return {
        "links": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "rules": [line for line in run(["iptables-save"]).splitlines() if not line.startswith(("#", ":"))],
        "mounts": [line for line in Path("/proc/mounts").read_text().splitlines() if settings.cluster in line],
        "processes": command_lines_naming(settings.cluster),
        "cgroups": sandbox.cgroups(),
        "inotify": Path("/proc/sys/fs/inotify/max_user_instances").read_text(),
        "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
        "state": settings.kind.exists(),
    }


def answer_of(url: str) -> str:
    """Empty while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def test_a_crashed_cluster_comes_back_serves_and_then_leaves_nothing(other: KindCluster) -> None:
    before = host_state(other.settings)
    other.up()
    backend = OwnBackend(other.settings, Steps())
    if backend.is_up():  # with the user's Docker there is nothing of ours to crash
        backend.sandbox.process.kill()
        backend.forwarder.kill()

    other.up()

    load_python(other)
    other.make_volumes("serves")
    server = pod("page", "serves", "-m", "http.server", "8000", "--directory", "/models")
    other.kubectl("create", "-f", "-", stdin=server)
    other.kubectl("create", "-f", "-", stdin=node_port_service("serves", "page"))
    assert "Directory listing" in eventually("the page answers", lambda: answer_of(other.node_port_url))

    other.down(wipe=True)
    assert host_state(other.settings) == before


def test_down_without_a_cluster_does_nothing(other: KindCluster) -> None:
    before = host_state(other.settings)

    other.down()

    assert host_state(other.settings) == before

"""Clusters for tests, as a pytest plug-in: `pytest_plugins = ["tests.cluster.fixtures"]` in tests/conftest.py.

Each test session has control planes of its own, which the kernel ends with the session. The kind cluster takes
longest, so sessions share the one that `cluster-up` makes and leave it up; `cluster-down` ends it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.control import ControlPlane, Size, free_ports
from tests.cluster.kind.cluster import KindCluster
from tests.cluster.programs import Programs, ensure
from tests.cluster.recipes import CONTROL, HELM
from tests.cluster.settings import Settings
from tests.cluster.steps import Steps


@pytest.fixture(scope="session")
def cluster_settings() -> Settings:
    return Settings.from_environment(os.environ)


@pytest.fixture(scope="session")
def control_programs(cluster_settings: Settings) -> Programs:
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok: name → path."""
    return ensure(cluster_settings, CONTROL, Steps())


@pytest.fixture(scope="session")
def helm(cluster_settings: Settings) -> Path:
    """The real Helm; where it works is decided by the KUBECONFIG that a test gives it."""
    return ensure(cluster_settings, (HELM,), Steps())["helm"]


@pytest.fixture
def make_control_plane(
    control_programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Size], ControlPlane]]:
    """Starts another control plane, which ends with the test; for tests that break it or need it empty."""
    with ExitStack() as planes:

        def make(size: Size = Size.NODES) -> ControlPlane:
            plane = control_plane_in(tmp_path_factory.mktemp("control"), control_programs, size)
            return planes.enter_context(plane)

        yield make


@pytest.fixture(scope="session")
def control_plane(control_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """With controllers, a scheduler and fake nodes of every pool."""
    with control_plane_in(tmp_path_factory.mktemp("nodes"), control_programs, Size.NODES) as plane:
        yield plane


@pytest.fixture(scope="session")
def api_server(control_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Only etcd and kube-apiserver: for schemas, admission and rights."""
    with control_plane_in(tmp_path_factory.mktemp("api"), control_programs, Size.API) as plane:
        yield plane


@pytest.fixture(scope="session")
def kind_cluster(cluster_settings: Settings) -> KindCluster:
    """A real cluster with one worker; made if there is none."""
    cluster = KindCluster(cluster_settings, Steps())
    cluster.up()
    return cluster


def control_plane_in(state: Path, programs: Programs, size: Size) -> ControlPlane:
    return ControlPlane(state=state, programs=programs, ports=free_ports(), size=size, dies_with_parent=True)

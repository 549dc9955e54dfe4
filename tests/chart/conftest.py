"""The chart for tests: rendered, or installed on an API server without pods."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.control import ControlPlane
from tests.support.helm import Helm


@pytest.fixture(scope="session")
def chart(helm: Path) -> Helm:
    """The chart without a cluster, for rendering."""
    return Helm(helm)


@pytest.fixture
def release(helm: Path, api_server: ControlPlane) -> Iterator[Helm]:
    """Helm on an API server that has no release of ours, before and after."""
    yield Helm(helm, api_server.kubeconfig)
    api_server.kubectl("delete", "crd", "omnimodels.serving.omnimodel.dev", "--ignore-not-found")

"""The chart on the shared kind cluster, and two models: the tiny painter, and a chain of fake stages for faults."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from images.build import Image
from omni_runtime.local.tiny_demo import make_checkpoint
from tests.cluster.kind.cluster import KindCluster
from tests.cluster_e2e import models
from tests.cluster_e2e.installation import Installation
from tests.support.helm import Helm

HERE = Path(__file__).parent
NAMESPACE = "e2e"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@dataclass(frozen=True)
class Cluster:
    """A kind cluster with the operator in it."""

    kind: KindCluster
    installation: Installation
    images: list[Image]
    namespace: str = NAMESPACE

    @property
    def runtime_image(self) -> str:
        return next(image.reference for image in self.images if image.name == "runtime-cpu")

    @property
    def checkpoint(self) -> Path:
        return self.kind.settings.models / "qwen-image"

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        """In the namespace of the tests."""
        return self.kind.kubectl("-n", self.namespace, *words, stdin=stdin)

    @contextmanager
    def serving(self, manifest: models.Manifest) -> Iterator[str]:
        """The model, Ready, made anew: one that a killed run left would still have pods with old images."""
        name: str = manifest["metadata"]["name"]
        self.delete(name)
        models.apply(self.kind, self.namespace, manifest)
        try:
            self.wait_ready(name)
            yield name
        finally:
            self.dismiss(name)

    def get(self, *what: str) -> models.Manifest:
        return models.get(self.kind, self.namespace, *what)

    def pods(self, model: str, component: str = "") -> list[models.Manifest]:
        return models.pods(self.kind, self.namespace, model, component)

    def restarts(self, model: str, *components: str) -> dict[str, int]:
        """How often each pod's container was started again, of these components or of all."""
        pods = [pod for component in components or ("",) for pod in self.pods(model, component)]
        return {pod["metadata"]["name"]: pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods}

    def wait_ready(self, name: str) -> None:
        models.wait_ready(self.kind, self.namespace, name)

    def delete(self, name: str) -> None:
        models.delete(self.kind, self.namespace, name)

    def dismiss(self, name: str) -> None:
        """Nobody waits until its pods are gone."""
        self.kubectl("delete", "omnimodel", name, "--ignore-not-found", "--wait=false")


@pytest.fixture(scope="session")
def cluster(kind_cluster: KindCluster, helm: Path) -> Cluster:
    make_checkpoint(kind_cluster.settings.models / "qwen-image")
    installation = Installation(kind_cluster, Helm(helm, kind_cluster.kubeconfig))
    images = installation.images()
    installation.load(images)
    installation.install(images)
    kind_cluster.make_volumes(NAMESPACE)
    return Cluster(kind_cluster, installation, images)


@pytest.fixture(scope="session")
def painter(cluster: Cluster) -> Iterator[str]:
    """The example, Ready."""
    with cluster.serving(models.example()) as name:
        yield name

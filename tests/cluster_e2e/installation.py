"""Our images in the test cluster's node, and the chart installed with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from images.build import Image, build
from tests.cluster.kind.cluster import KindCluster
from tests.cluster.kind.volumes import namespace_object
from tests.support.helm import NAMESPACE, Helm, Values
from tests.support.operator_models import laid_over

VALUES = Path(__file__).with_name("values.yaml")
IMAGES = ("operator", "frontend", "runtime-cpu")
NOTHING: Values = {}


@dataclass(frozen=True)
class Installation:
    cluster: KindCluster
    helm: Helm

    def images(self) -> list[Image]:
        return build(IMAGES, self.cluster.settings.cache / "images")

    def load(self, images: Sequence[Image]) -> None:
        """Load what the node lacks; references are content hashes, so what it has is right."""
        there = set(self.cluster.node_exec(self.cluster.worker, "ctr", "-n", "k8s.io", "images", "ls", "-q").split())
        self.cluster.load([str(image.archive) for image in images if image.reference not in there])

    def install(self, images: Sequence[Image], values: Values = NOTHING) -> str:
        """Install or upgrade, wait until the operator is ready; returns the chart's notes."""
        self.cluster.kubectl("apply", "-f", "-", stdin=yaml.dump(namespace_object(NAMESPACE)))
        wait = ("--wait", "--timeout", "120s")
        return self.helm.install(laid_over(references(images), values), "--values", str(VALUES), *wait)


def references(images: Sequence[Image]) -> Values:
    named = {image.name: image.reference for image in images}
    return {
        "images": {
            "operator": named["operator"],
            "frontend": named["frontend"],
            "runtime": {"cpu": named["runtime-cpu"]},
        }
    }

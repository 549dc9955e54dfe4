"""Pictures as arrays, to be compared with those of plain diffusers."""

import io

import numpy
from PIL import Image

from tests.cluster_e2e import inside
from tests.cluster_e2e.conftest import Cluster
from tests.support.reference_images import ReferenceRequest, reference_images


def array(png: bytes) -> numpy.ndarray:
    return numpy.asarray(Image.open(io.BytesIO(png)))


def paints_right(cluster: Cluster, model: str, asked: ReferenceRequest) -> bool:
    """Whether a client inside the cluster gets what plain diffusers make, to the last pixel."""
    url = cluster.get("omnimodel", model)["status"]["endpoints"]["url"]
    png = inside.picture(cluster.kind, cluster.namespace, cluster.runtime_image, url, model, asked)
    return numpy.array_equal(array(png), reference_images(cluster.checkpoint, [asked])[0])

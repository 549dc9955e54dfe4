"""What a worker in a pod says of itself: its Prometheus metrics, through the API server's pod proxy."""

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from omni_contract.wire import names
from tests.cluster_e2e.conftest import Cluster
from tests.cluster_e2e.models import Manifest

HELD = (names.WORKER_RUNNING, names.WORKER_WAITING, names.WORKER_PAYLOADS, names.WORKER_PAYLOAD_BYTES)


def samples(cluster: Cluster, pod: Manifest) -> list[Sample]:
    """Of a pod with several workers those of the first."""
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{pod['metadata']['name']}:{names.METRICS_PORT}/proxy/metrics"
    families = text_string_to_metric_families(cluster.kind.kubectl("get", "--raw", path))
    return [sample for family in families for sample in family.samples]


def held(cluster: Cluster, pod: Manifest) -> dict[str, float]:
    """What is not zero of requests that run or wait, and of payloads that are kept for others."""
    values = {sample.name: sample.value for sample in samples(cluster, pod)}
    return {name: values[name] for name in HELD if values[name]}

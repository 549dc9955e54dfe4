"""The headless Service of a stage: its EndpointSlices list the replicas for the frontends."""

from omni_contract.wire import names as wire
from omni_operator import labels
from omni_operator.objects import Manifest
from omni_operator.plan import names


def stage_service(model: str, stage: str) -> Manifest:
    """Publishes replicas that are not ready, too: frontends connect early and read readiness from the slices."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": names.component_name(model, stage), "labels": labels.of_component(model, stage)},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": labels.selector(model, stage),
            "ports": [{"name": "grpc", "port": wire.STAGE_PORT, "targetPort": "grpc", "appProtocol": "grpc"}],
        },
    }

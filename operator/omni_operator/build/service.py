"""The headless Service of a stage: its EndpointSlices list the replicas for the frontends."""

from omni_contract.wire import names as wire
from omni_operator import labels
from omni_operator.objects import Manifest
from omni_operator.plan import names


def stage_service(model: str, stage: str, component: str, target: str | int = "grpc") -> Manifest:
    """Publishes replicas that are not ready, too: frontends connect early and read readiness from the slices.

    `component` has the pods, in which the stage listens on `target`; the slices tell both.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": names.component_name(model, stage), "labels": labels.of_component(model, stage)},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": labels.selector(model, component),
            "ports": [{"name": "grpc", "port": wire.STAGE_PORT, "targetPort": target, "appProtocol": "grpc"}],
        },
    }

"""A model of fake stages for the cluster: two replicas of each and two frontends, so that any one may die."""

from itertools import pairwise
from typing import Any

from tests.cluster.kind.config import NODE_PORT
from tests.support.fake_chain import MODEL, SIDE, STAGES

STEPS = {"behavior": "delay", "delaySeconds": 0.02, "steps": 3}
SMALL = {"cpu": "50m", "memory": "256Mi"}


def fake_painter(
    name: str = MODEL, *, engine: dict[str, Any] = STEPS, replicas: int = 2, **frontend: Any
) -> dict[str, Any]:
    """Connector grpc makes every payload a handle that a consumer fetches."""
    stages: list[dict[str, Any]] = [
        {"name": stage, "fake": engine, "replicas": replicas, "resources": SMALL, "drain": {"timeoutSeconds": 30}}
        for stage in STAGES
    ]
    stages[0]["sampling"] = {"width": SIDE, "height": SIDE}
    stages[-1]["output"] = {"modality": "image"}
    edges = [{"from": source, "to": target, "connector": "grpc"} for source, target in pairwise(STAGES)]
    return {
        "apiVersion": "serving.omnimodel.dev/v1alpha1",
        "kind": "OmniModel",
        "metadata": {"name": name},
        "spec": {
            "model": {"source": "pvc://models/none", "loadFormat": "dummy", "servedNames": [MODEL]},
            "stages": stages,
            "edges": edges,
            "frontend": {"replicas": replicas, **frontend},
        },
    }


NODE_PORT_SERVICE = {"type": "NodePort", "nodePort": NODE_PORT}

"""A client inside the cluster: a pod that asks the model's own URL for a picture, with the official SDK."""

import json
from base64 import b64decode
from dataclasses import asdict
from typing import Any

import yaml

from tests.cluster.kind.cluster import KindCluster
from tests.support.reference_images import ReferenceRequest

POD = "client"
TIMEOUT_S = 120
SCRIPT = """
import json, sys
from openai import OpenAI
url, model, asked = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
client = OpenAI(base_url=url, api_key="none", max_retries=0)
size = f"{asked.pop('width')}x{asked.pop('height')}"
answer = client.images.generate(model=model, prompt=asked.pop("prompt"), size=size, extra_body=asked)
print(answer.data[0].b64_json)
"""


def picture(cluster: KindCluster, namespace: str, image: str, url: str, model: str, asked: ReferenceRequest) -> bytes:
    """The PNG that a pod in the namespace gets. `image` is the runtime's; the claim `venv` brings the SDK."""
    words = [url, model, json.dumps({key: value for key, value in asdict(asked).items() if value is not None})]
    cluster.kubectl("delete", "pod", POD, "-n", namespace, "--ignore-not-found", "--wait")
    cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=yaml.dump(client_pod(image, words)))
    wait = ("--for=jsonpath={.status.phase}=Succeeded", f"--timeout={TIMEOUT_S}s")
    cluster.kubectl("wait", f"pod/{POD}", "-n", namespace, *wait)
    png = b64decode(cluster.kubectl("logs", POD, "-n", namespace))
    cluster.kubectl("delete", "pod", POD, "-n", namespace, "--wait=false")
    return png


def client_pod(image: str, words: list[str]) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["/opt/venv/bin/python", "-c", SCRIPT, *words],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "venv", "mountPath": "/opt/venv", "readOnly": True}],
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "venv", "persistentVolumeClaim": {"claimName": "venv", "readOnly": True}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD}, "spec": spec}
